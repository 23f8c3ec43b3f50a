#include "rules/judge/sizes.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "egraph/rewrite.hpp"
#include "nest/term/grammar.hpp"

namespace loopegg {
namespace {

using Kind = SizeFact::Kind;

std::optional<std::int64_t> whole(const Polynomial& p) {
    const auto c = p.constant();
    return c && c->get_den() == 1 && c->get_num().fits_slong_p() ? std::optional<std::int64_t>(c->get_num().get_si()) : std::nullopt;
}

// The largest product of symbols that divides every term.
Monomial common_factor(const Polynomial& p) {
    std::optional<Monomial> common;
    for (const auto& [m, c] : p.terms()) {
        if (!common) {
            common = m;
            continue;
        }
        for (auto it = common->begin(); it != common->end();) {
            const auto at = m.find(it->first);
            it->second = at == m.end() ? 0 : std::min(it->second, at->second);
            it = it->second == 0 ? common->erase(it) : std::next(it);
        }
    }
    return common.value_or(Monomial{});
}

bool is_call(const Expression& e, const char* name) { return e.form == Expression::Form::call && e.function->name == name; }

}  // namespace

Sizes::Sizes(const Rule& rule, const std::map<std::string, std::int64_t>& fixed) : rule_(rule) {
    for (const auto& [variable, value] : fixed) define(variable, Polynomial(static_cast<long>(value)));
    unify_equal_numbers();
    note_divisors();
    note_lists();
    note_guards();
}

Polynomial Sizes::extent(const std::string& axis) {
    if (const auto leaf = axis_name(Term(axis)); leaf && leaf->extent > 0) return static_cast<long>(leaf->extent);
    const std::string symbol = "(extent " + axis + ")";
    least_.try_emplace(symbol, 1);
    return resolved(Polynomial::of(symbol));
}

Polynomial Sizes::fresh(const std::string& meaning, std::int64_t least) {
    least_.try_emplace(meaning, least);
    return Polynomial::of(meaning);
}

Polynomial Sizes::resolved(Polynomial p) const {
    for (int round = 0; round < 16; ++round) {
        bool changed = false;
        for (const std::string& s : p.symbols())
            if (const auto at = known_.find(s); at != known_.end()) p = p.substituted(s, at->second), changed = true;
        if (!changed) break;
    }
    return p;
}

Polynomial Sizes::value(const Term& number) {
    if (const auto constant = number.integer()) return static_cast<long>(*constant);
    for (const ChoiceCall& c : rule_.choices)
        if (c.computed && c.variable == number.op()) return value(*c.computed);
    return resolved(Polynomial::of(number.op().text()));
}

Polynomial Sizes::value(const Expression& e) {
    if (e.form == Expression::Form::number) return static_cast<long>(e.number);
    if (e.form == Expression::Form::variable) return value(Term(e.name));
    if (e.form == Expression::Form::call) return resolved(call(e));
    return fresh(e.text, std::numeric_limits<std::int64_t>::min());
}

Polynomial Sizes::call(const Expression& e) {
    const std::string& name = e.function->name;
    const auto unknown = [&] { return fresh(e.text, std::numeric_limits<std::int64_t>::min()); };
    if (name == "extent" && e.arguments[0].form == Expression::Form::variable) return extent(e.arguments[0].name.text());
    if (name == "instances" || name == "output-tile") return fresh(e.text, 0);
    if (name == "min" || name == "max") {
        std::vector<Polynomial> all;
        for (const Expression& argument : e.arguments) all.push_back(value(argument));
        return smallest(all, name == "max");
    }
    if (name != "+" && name != "-" && name != "*" && name != "/" && name != "floor-div" && name != "%") return unknown();
    Polynomial result = value(e.arguments[0]);
    for (std::size_t i = 1; i < e.arguments.size(); ++i) {
        const Polynomial next = value(e.arguments[i]);
        if (name == "+") result += next;
        if (name == "-") result = result - next;
        if (name == "*") result = result * next;
        if (name == "/") result = quotient_of(e, result, next);
        if (name == "floor-div" || name == "%") result = floored(e, result, next, name == "%");
    }
    return result;
}

// A quotient has a value only where it is whole.
Polynomial Sizes::quotient_of(const Expression& e, const Polynomial& a, const Polynomial& b) {
    if (const auto exact = a.divided_by(b); exact && exact->is_whole()) return *exact;
    const Polynomial made = fresh(e.text, std::numeric_limits<std::int64_t>::min());
    if (whole(b)) assume({Kind::zero, made * b - a});
    return made;
}

Polynomial Sizes::floored(const Expression& e, const Polynomial& a, const Polynomial& b, bool remainder) {
    const std::string text = "(floor-div " + to_string(a) + " " + to_string(b) + ")";
    const auto by = whole(b);
    if (!by || *by < 1) return fresh(e.text, std::numeric_limits<std::int64_t>::min());
    const Polynomial quotient = fresh(text, std::numeric_limits<std::int64_t>::min());
    if (made_.emplace(text, text).second) {
        assume_at_least(a, quotient * b);
        assume_at_least(quotient * b + b, a + 1);
    }
    return remainder ? a - quotient * b : quotient;
}

Polynomial Sizes::smallest(const std::vector<Polynomial>& all, bool largest) {
    // (max ?k 2) is ?k where ?k is at least 2, and (min ?k 2) is 2.
    if (all.size() == 2)
        for (const std::size_t i : {0u, 1u}) {
            const auto constant = whole(all[1 - i]);
            const auto symbol = all[i].as_symbol();
            if (constant && symbol && least(*symbol) >= *constant) return largest ? all[i] : all[1 - i];
        }
    std::string text = largest ? "(max" : "(min";
    for (const Polynomial& p : all) text += " " + to_string(p);
    text += ")";
    const Polynomial made = fresh(text, std::numeric_limits<std::int64_t>::min());
    if (!made_.emplace(text, text).second) return made;
    std::vector<std::vector<SizeFact>> one_of;
    for (const Polynomial& p : all) {
        std::vector<SizeFact> facts{{Kind::zero, made - p}};
        for (const Polynomial& q : all) facts.push_back({Kind::at_least_zero, largest ? p - q : q - p});
        one_of.push_back(std::move(facts));
    }
    assume_one_of(std::move(one_of));
    return made;
}

void Sizes::assume_at_least(const Polynomial& p, const Polynomial& q) { assume({Kind::at_least_zero, p - q}); }

void Sizes::assume(const SizeFact& fact) {
    facts_.push_back({{fact}});
    if (fact.kind == Kind::at_least_zero) note_bound(resolved(fact.of_size));
}

// x - 3 >= 0 alone is a bound that products of x profit from.
void Sizes::note_bound(const Polynomial& p) {
    const Polynomial x = p.constant() ? Polynomial() : p - Polynomial(p.terms().contains({}) ? p.terms().at({}) : mpq_class(0));
    const auto symbol = x.as_symbol();
    const auto bound = whole(x - p);
    if (!symbol || !bound) return;
    auto [at, fresh] = least_.emplace(*symbol, *bound);
    if (!fresh) at->second = std::max(at->second, *bound);
}

// (= (extent ?a) (extent ?b)), (= ?e (extent ?a)): two names for one number.
void Sizes::unify_equal_numbers() {
    for (const GuardCall& g : rule_.guards) {
        if (g.guard->name != "=" || g.guard->capacity) continue;
        const auto simple = [](const Expression& e) {
            return e.form == Expression::Form::number || e.form == Expression::Form::variable || is_call(e, "extent");
        };
        if (!simple(g.arguments[0]) || !simple(g.arguments[1])) continue;
        const Polynomial a = value(g.arguments[0]), b = value(g.arguments[1]);
        if (a == b) continue;
        if (const auto s = a.as_symbol())
            define(*s, b);
        else if (const auto t = b.as_symbol())
            define(*t, a);
    }
}

void Sizes::note_divisors_in(const Expression& e) {
    for (const Expression& a : e.arguments) note_divisors_in(a);
    if (is_call(e, "/") && e.arguments.size() == 2) note_divisor(value(e.arguments[0]), value(e.arguments[1]), false);
}

// Factors that a list offers come first, because the sides of the rule are written with these.
void Sizes::note_divisors() {
    for (const ChoiceCall& c : rule_.choices) {
        const std::string list = c.list ? c.list->name : "";
        const bool of_axes = list == "divisors" || list == "coarse" || list == "tiles" || list == "common-divisors";
        if (!of_axes && list != "proper-divisors") continue;
        const std::size_t many = list == "common-divisors" ? 2 : 1;
        for (std::size_t i = 0; i < many; ++i) {
            const Expression& of = c.arguments[i];
            if (of_axes && of.form != Expression::Form::variable) continue;
            note_divisor(of_axes ? extent(of.name.text()) : value(of), value(Term(c.variable)), list != "common-divisors");
        }
    }
    for (const GuardCall& g : rule_.guards)
        if (g.guard->name == "divides") note_divisor(value(g.arguments[1]), value(g.arguments[0]), false);
    for (const GuardCall& g : rule_.guards)
        for (const Expression& a : g.arguments) note_divisors_in(a);
    for (const ChoiceCall& c : rule_.choices) {
        for (const Expression& a : c.arguments) note_divisors_in(a);
        if (c.computed) note_divisors_in(*c.computed);
    }
}

void Sizes::note_divisor(const Polynomial& whole_size, const Polynomial& part, bool proper) {
    const Polynomial size = resolved(whole_size), by = resolved(part);
    if (const auto exact = size.divided_by(by); exact && exact->is_whole()) return;
    const auto symbol = size.as_symbol();
    if (symbol && !by.symbols().contains(*symbol) && !by.is_zero()) {
        if (const auto constant = whole(by); constant && *constant < 0) return;
        const Polynomial times = fresh("(/ " + *symbol + " " + to_string(by) + ")", proper ? 2 : least(*symbol) >= 1 ? 1 : 0);
        define(*symbol, times * by);
    } else if (const auto constant = whole(by); constant && *constant > 0) {
        assume({Kind::multiple, size, *constant});
    }
}

void Sizes::note_lists() {
    for (const ChoiceCall& c : rule_.choices)
        if (c.list) note_list(c);
}

void Sizes::note_list(const ChoiceCall& c) {
    const std::string& list = c.list->name;
    const Polynomial k = value(Term(c.variable));
    const auto number = [&](std::size_t i) { return value(c.arguments[i]); };
    const auto of_axis = [&](std::size_t i) { return c.arguments[i].form == Expression::Form::variable ? extent(c.arguments[i].name.text()) : Polynomial(); };
    if (list == "divisors" || list == "coarse" || list == "tiles" || list == "common-divisors" || list == "vector-blocks" || list == "proper-divisors")
        assume_at_least(k, 2);
    if (list == "divisors" || list == "coarse" || list == "tiles") compare("<", k, of_axis(0));
    if (list == "proper-divisors") compare("<", k, number(0));
    if (list == "tiles" || list == "uneven-tiles") assume_at_least(k, number(1)), assume_at_least(number(2), k);
    if (list == "uneven-tiles") assume_at_least(k, 1), compare("<", k, of_axis(0));
    if (list == "range") assume_at_least(k, number(0)), compare("<", k, number(1));
    if (list == "powers") assume_at_least(k, number(0)), assume_at_least(number(1), k), assume_at_least(k, 2);
}

void Sizes::note_guards() {
    for (const GuardCall& g : rule_.guards) {
        const std::string& name = g.guard->name;
        if (name != "=" && name != "!=" && name != "<" && name != "<=" && name != ">" && name != ">=") continue;
        compare(name, value(g.arguments[0]), value(g.arguments[1]));
    }
}

void Sizes::compare(const std::string& relation, const Polynomial& a, const Polynomial& b) {
    if (relation == ">" || relation == ">=") return compare(relation == ">" ? "<" : "<=", b, a);
    Polynomial difference = resolved(b - a);
    // A positive factor of both sides says nothing: ?k < ?k * m is 1 < m.
    if (const Monomial common = common_factor(difference); !common.empty() && is_positive(common)) difference = *difference.divided_by(Polynomial::of(common));
    if (relation == "=") assume({Kind::zero, difference});
    if (relation == "!=") assume({Kind::not_zero, difference});
    if (relation == "<") assume_at_least(difference, 1);
    if (relation == "<=") assume_at_least(difference, 0);
}

std::int64_t Sizes::least(const std::string& symbol) const {
    const auto at = least_.find(symbol);
    return at == least_.end() ? std::numeric_limits<std::int64_t>::min() : at->second;
}

bool Sizes::is_positive(const Monomial& m) const {
    return std::all_of(m.begin(), m.end(), [&](const auto& factor) { return least(factor.first) >= 1; });
}

std::string Sizes::identifier(const Monomial& m) {
    auto [at, fresh] = identifiers_.emplace(m, "p" + std::to_string(identifiers_.size()));
    if (fresh) named_.push_back(m);
    return at->second;
}

std::string Sizes::text(const Polynomial& given) {
    const Polynomial p = resolved(given);
    mpz_class denominator = 1;
    for (const auto& [m, c] : p.terms()) denominator = lcm(denominator, c.get_den());
    std::string text;
    for (const auto& [m, c] : p.terms()) {
        const mpq_class whole_number = c * denominator;
        text += (text.empty() ? "" : " + ") + whole_number.get_num().get_str() + (m.empty() ? "" : "*" + identifier(m));
    }
    return text.empty() ? "0" : "(" + text + ")";
}

std::string Sizes::text(const SizeFact& fact) {
    const std::string p = text(fact.of_size);
    switch (fact.kind) {
        case Kind::zero: return p + " = 0";
        case Kind::not_zero: return "(" + p + " < 0 or " + p + " > 0)";
        case Kind::at_least_zero: return p + " >= 0";
        case Kind::multiple: return p + " mod " + std::to_string(fact.of) + " = 0";
    }
    return "1 = 1";
}

// (x - a)(y - b) >= 0 for the least values a and b of two factors.
void Sizes::bound_product(const Monomial& m, SizeConditions& into) {
    if (m.size() == 1 && m.begin()->second == 1) {
        if (const std::int64_t a = least(m.begin()->first); a != std::numeric_limits<std::int64_t>::min())
            into.push_back(identifier(m) + " >= " + std::to_string(a));
        return;
    }
    if (m.empty() || !is_positive(m)) return;
    Monomial rest = m;
    const std::string first = rest.begin()->first;
    if (--rest.begin()->second == 0) rest.erase(rest.begin());
    const std::int64_t a = least(first);
    std::int64_t b = 1;
    for (const auto& [symbol, power] : rest)
        for (int i = 0; i < power; ++i) b *= std::min<std::int64_t>(least(symbol), 1'000);
    if (a > 1'000'000 || b > 1'000'000'000) return;
    into.push_back(fmt::format("{} >= {}*{} + {}*{} - {}", identifier(m), b, identifier({{first, 1}}), a, identifier(rest), a * b));
}

SizeConditions Sizes::conditions() {
    SizeConditions all;
    for (const Alternatives& alternatives : facts_) {
        std::string either;
        for (const auto& facts : alternatives) {
            std::string every;
            for (const SizeFact& f : facts) every += (every.empty() ? "" : " and ") + text(f);
            either += (either.empty() ? "" : " or ") + (alternatives.size() > 1 ? "(" + every + ")" : every);
        }
        all.push_back(alternatives.size() > 1 ? "(" + either + ")" : either);
    }
    for (const auto& [symbol, at_least] : least_)  // of what has another form by now
        if (!is_free(symbol) && at_least > std::numeric_limits<std::int64_t>::min())
            all.push_back(text(Polynomial::of(symbol)) + " >= " + std::to_string(at_least));
    for (std::size_t i = 0; i < named_.size(); ++i) bound_product(Monomial(named_[i]), all);  // names more, which the loop reaches too
    return all;
}

std::vector<std::string> Sizes::parameters() const {
    std::vector<std::string> all;
    for (const Monomial& m : named_) all.push_back(identifiers_.at(m));
    return all;
}

std::optional<std::int64_t> Sizes::value_at(const Polynomial& given, const SizePoint& point) const {
    const Polynomial p = resolved(given);
    mpq_class sum = 0;
    for (const auto& [m, c] : p.terms()) {
        mpq_class product = c;
        if (!m.empty()) {
            const auto name = identifiers_.find(m);
            const auto at = name == identifiers_.end() ? point.end() : point.find(name->second);
            if (at == point.end()) return {};
            product *= mpq_class(static_cast<long>(at->second));
        }
        sum += product;
    }
    return whole(Polynomial(sum));
}

std::string Sizes::described(const SizePoint& point) const {
    std::set<std::string> symbols;
    for (const auto& [symbol, least] : least_) symbols.insert(symbol);
    for (const auto& [symbol, value] : known_) symbols.insert(symbol);
    for (const Monomial& m : named_)
        for (const auto& [symbol, power] : m) symbols.insert(symbol);
    std::string text;
    for (const std::string& symbol : symbols) {
        const bool is_extent = symbol.starts_with("(extent "), is_variable_of_rule = symbol[0] == '?';
        if (!is_extent && !is_variable_of_rule && !symbol.starts_with("(instances") && !symbol.starts_with("(output-tile")) continue;
        if (const auto value = value_at(Polynomial::of(symbol), point)) text += (text.empty() ? "" : ", ") + symbol + " = " + std::to_string(*value);
    }
    return text;
}

}  // namespace loopegg
