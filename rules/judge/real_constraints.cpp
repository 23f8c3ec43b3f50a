#include "rules/judge/real_constraints.hpp"

#include <algorithm>
#include <set>

namespace loopegg {
namespace {

constexpr std::size_t most_symbols = 5, most_rows = 4000;

// A linear condition over monomials: sum of coefficients + constant, > 0 or >= 0.
struct Row {
    std::map<Monomial, mpq_class> coefficients;
    mpq_class constant = 0;
    bool strict = false;
};

Row row_of(const SignCondition& c) {
    Row row;
    row.strict = c.strict;
    for (const auto& [m, coefficient] : c.p.terms()) (m.empty() ? row.constant : row.coefficients[m]) = coefficient;
    return row;
}

// Rows without unknowns that do not hold.
bool is_broken(const Row& r) { return r.coefficients.empty() && (r.strict ? r.constant <= 0 : r.constant < 0); }

Row together(const Row& below, const Row& above, const Monomial& m) {
    const mpq_class p = above.coefficients.at(m), q = -below.coefficients.at(m);  // both positive
    Row out;
    out.strict = below.strict || above.strict;
    out.constant = above.constant * q + below.constant * p;
    out.coefficients = above.coefficients;
    for (auto& [n, c] : out.coefficients) c *= q;
    for (const auto& [n, c] : below.coefficients) out.coefficients[n] += c * p;
    std::erase_if(out.coefficients, [](const auto& entry) { return entry.second == 0; });
    return out;
}

// Eliminates one unknown after another.
bool inconsistent(std::vector<Row> rows) {
    for (;;) {
        if (std::any_of(rows.begin(), rows.end(), is_broken)) return true;
        std::erase_if(rows, [](const Row& r) { return r.coefficients.empty(); });
        if (rows.empty() || rows.size() > most_rows) return false;
        const Monomial m = rows.front().coefficients.begin()->first;
        std::vector<Row> below, above, next;
        for (Row& r : rows) {
            const auto at = r.coefficients.find(m);
            (at == r.coefficients.end() ? next : at->second > 0 ? above : below).push_back(std::move(r));
        }
        for (const Row& b : below)
            for (const Row& a : above) next.push_back(together(b, a, m));
        rows = std::move(next);
    }
}

using Signs = std::map<std::string, int>;

// What the signs of its symbols say of a product.
void add_sign(const Monomial& m, const Signs& signs, std::vector<Row>& rows) {
    int sign = 1;
    for (const auto& [symbol, power] : m) {
        const auto at = signs.find(symbol);
        if (at == signs.end() && power % 2 != 0) return;
        if (at != signs.end() && power % 2 != 0) sign *= at->second;
    }
    Row row;
    row.coefficients[m] = sign;
    row.strict = std::all_of(m.begin(), m.end(), [&](const auto& factor) { return signs.contains(factor.first); });
    rows.push_back(std::move(row));
}

bool inconsistent_with(const SignConditions& conditions, const Signs& signs) {
    std::vector<Row> rows;
    std::set<Monomial> products;
    for (SignCondition c : conditions) {
        for (const auto& [symbol, sign] : signs)
            if (sign == 0) c.p = c.p.substituted(symbol, Polynomial());
        rows.push_back(row_of(c));
        for (const auto& [m, coefficient] : c.p.terms())
            if (!m.empty()) products.insert(m);
    }
    Signs nonzero = signs;
    std::erase_if(nonzero, [](const auto& entry) { return entry.second == 0; });
    for (const Monomial& m : products) add_sign(m, nonzero, rows);
    for (const auto& [symbol, sign] : nonzero) add_sign({{symbol, 1}}, nonzero, rows);
    return inconsistent(std::move(rows));
}

}  // namespace

bool never_met(const SignConditions& conditions) {
    if (conditions.empty()) return false;
    std::set<std::string> in_products;
    for (const SignCondition& c : conditions)
        for (const auto& [m, coefficient] : c.p.terms())
            if (m.size() > 1 || (m.size() == 1 && m.begin()->second > 1))
                for (const auto& [symbol, power] : m) in_products.insert(symbol);
    if (in_products.size() > most_symbols) return false;
    Signs signs;
    const auto every = [&](const auto& self, std::set<std::string>::const_iterator at) -> bool {
        if (at == in_products.end()) return inconsistent_with(conditions, signs);
        for (const int sign : {-1, 0, 1}) {
            signs[*at] = sign;
            if (!self(self, std::next(at))) return false;
        }
        return true;
    };
    return every(every, in_products.begin());
}

}  // namespace loopegg
