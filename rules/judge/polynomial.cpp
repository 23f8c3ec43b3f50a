#include "rules/judge/polynomial.hpp"

#include <algorithm>

namespace loopegg {
namespace {

Monomial product(Monomial a, const Monomial& b) {
    for (const auto& [symbol, power] : b) a[symbol] += power;
    return a;
}

std::optional<Monomial> quotient(Monomial a, const Monomial& b) {
    for (const auto& [symbol, power] : b) {
        const auto at = a.find(symbol);
        if (at == a.end() || at->second < power) return {};
        if ((at->second -= power) == 0) a.erase(at);
    }
    return a;
}

std::string to_string(const Monomial& m) {
    std::string text;
    for (const auto& [symbol, power] : m)
        for (int i = 0; i < power; ++i) text += (text.empty() ? "" : "*") + symbol;
    return text;
}

}  // namespace

Polynomial::Polynomial(const mpq_class& constant) { add({}, constant); }

Polynomial Polynomial::of(const std::string& symbol) { return of(Monomial{{symbol, 1}}); }

Polynomial Polynomial::of(const Monomial& monomial) {
    Polynomial p;
    p.add(monomial, 1);
    return p;
}

void Polynomial::add(const Monomial& monomial, const mpq_class& coefficient) {
    if (coefficient == 0) return;
    auto [at, fresh] = terms_.emplace(monomial, coefficient);
    if (!fresh && (at->second += coefficient) == 0) terms_.erase(at);
}

bool Polynomial::is_linear() const {
    for (const auto& [m, c] : terms_)
        if (m.size() > 1 || (m.size() == 1 && m.begin()->second > 1)) return false;
    return true;
}

bool Polynomial::is_whole() const {
    return std::all_of(terms_.begin(), terms_.end(), [](const auto& term) { return term.second.get_den() == 1; });
}

std::optional<mpq_class> Polynomial::constant() const {
    if (terms_.empty()) return mpq_class(0);
    return terms_.size() == 1 && terms_.begin()->first.empty() ? std::optional(terms_.begin()->second) : std::nullopt;
}

std::optional<std::string> Polynomial::as_symbol() const {
    if (terms_.size() != 1 || terms_.begin()->second != 1) return {};
    const Monomial& m = terms_.begin()->first;
    return m.size() == 1 && m.begin()->second == 1 ? std::optional(m.begin()->first) : std::nullopt;
}

std::set<std::string> Polynomial::symbols() const {
    std::set<std::string> all;
    for (const auto& [m, c] : terms_)
        for (const auto& [symbol, power] : m) all.insert(symbol);
    return all;
}

Polynomial Polynomial::substituted(const std::string& symbol, const Polynomial& value) const {
    Polynomial out;
    for (const auto& [m, c] : terms_) {
        Monomial rest = m;
        int power = 0;
        if (const auto at = rest.find(symbol); at != rest.end()) power = at->second, rest.erase(at);
        Polynomial term;
        term.add(rest, c);
        for (int i = 0; i < power; ++i) term = term * value;
        out += term;
    }
    return out;
}

std::optional<Polynomial> Polynomial::divided_by(const Polynomial& divisor) const {
    if (divisor.is_zero()) return {};
    if (is_zero()) return Polynomial();
    if (divisor.terms_.size() == 1) {
        const auto& [m, c] = *divisor.terms_.begin();
        Polynomial out;
        for (const auto& [mine, coefficient] : terms_) {
            const auto rest = quotient(mine, m);
            if (!rest) return {};
            out.add(*rest, coefficient / c);
        }
        return out;
    }
    const auto rest = quotient(terms_.rbegin()->first, divisor.terms_.rbegin()->first);
    if (!rest) return {};
    Polynomial factor;
    factor.add(*rest, terms_.rbegin()->second / divisor.terms_.rbegin()->second);
    return divisor * factor == *this ? std::optional(factor) : std::nullopt;
}

Polynomial& Polynomial::operator+=(const Polynomial& other) {
    for (const auto& [m, c] : other.terms_) add(m, c);
    return *this;
}

Polynomial operator-(const Polynomial& a, const Polynomial& b) {
    Polynomial out = a;
    for (const auto& [m, c] : b.terms_) out.add(m, -c);
    return out;
}

Polynomial operator*(const Polynomial& a, const Polynomial& b) {
    Polynomial out;
    for (const auto& [m, c] : a.terms_)
        for (const auto& [n, d] : b.terms_) out.add(product(m, n), c * d);
    return out;
}

std::string to_string(const Polynomial& p) {
    std::string text;
    for (const auto& [m, c] : p.terms()) {
        const mpq_class size = abs(c);
        if (!text.empty() || c < 0) text += c < 0 ? (text.empty() ? "-" : " - ") : " + ";
        const std::string name = to_string(m);
        text += name.empty() ? size.get_str() : size == 1 ? name : size.get_str() + "*" + name;
    }
    return text.empty() ? "0" : text;
}

}  // namespace loopegg
