#include "rules/judge/piecewise.hpp"

#include <algorithm>
#include <set>

#include "graph/functions.hpp"

namespace loopegg {
namespace {

// Conditions on signs of polynomials over the reals: whether they exclude each other. By cases for the signs of symbols, and Fourier and Motzkin's elimination
// over their products, which is exact where the conditions are linear.

constexpr std::size_t max_symbols = 5, max_rows = 4000;

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
        if (rows.empty() || rows.size() > max_rows) return false;
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

// True only where no values of the symbols meet all conditions.
bool never_met(const SignConditions& conditions) {
    if (conditions.empty()) return false;
    std::set<std::string> in_products;
    for (const SignCondition& c : conditions)
        for (const auto& [m, coefficient] : c.p.terms())
            if (m.size() > 1 || (m.size() == 1 && m.begin()->second > 1))
                for (const auto& [symbol, power] : m) in_products.insert(symbol);
    if (in_products.size() > max_symbols) return false;
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

constexpr std::size_t max_pieces = 96;

struct TooMany {};

Piecewise constant(const mpq_class& c) { return {{{}, Polynomial(c)}}; }

SignConditions both(SignConditions a, const SignConditions& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

template <class Combine>
Piecewise combined(const Piecewise& a, const Piecewise& b, const Combine& combine) {
    Piecewise all;
    for (const Piece& p : a)
        for (const Piece& q : b) combine(both(p.where, q.where), p.value, q.value, all);
    std::erase_if(all, [](const Piece& p) { return impossible(p.where); });
    if (all.size() > max_pieces) throw TooMany{};
    return all;
}

Piecewise arithmetic(const Piecewise& a, const Piecewise& b, char op) {
    return combined(a, b, [op](SignConditions where, const Polynomial& p, const Polynomial& q, Piecewise& all) {
        all.push_back({std::move(where), op == '+' ? p + q : op == '-' ? p - q : p * q});
    });
}

Piecewise extreme(const Piecewise& a, const Piecewise& b, bool largest) {
    return combined(a, b, [largest](const SignConditions& where, const Polynomial& p, const Polynomial& q, Piecewise& all) {
        const Polynomial above = largest ? p - q : q - p;
        if (above.is_zero()) return all.push_back({where, p});
        all.push_back({both(where, {{above, false}}), p});
        all.push_back({both(where, {{Polynomial() - above, true}}), q});
    });
}

// f of some arguments, as a symbol that names them.
Piecewise applied(const std::string& name, const std::vector<Piecewise>& arguments) {
    struct Named {
        SignConditions where;
        std::string text;
    };
    std::vector<Named> all{{{}, "(" + name}};
    for (const Piecewise& argument : arguments) {
        std::vector<Named> more;
        for (const Named& n : all)
            for (const Piece& p : argument) more.push_back({both(n.where, p.where), n.text + " [" + to_string(p.value) + "]"});
        if (more.size() > max_pieces) throw TooMany{};
        all = std::move(more);
    }
    Piecewise made;
    for (Named& n : all) made.push_back({std::move(n.where), Polynomial::of(n.text + ")")});
    return made;
}

Piecewise divided(const Piecewise& a, const Piecewise& b) {
    if (b.size() == 1 && b[0].where.empty())
        if (const auto by = b[0].value.constant(); by && *by != 0) return arithmetic(a, constant(1 / *by), '*');
    return arithmetic(a, applied("/", {constant(1), b}), '*');
}

Piecewise read(const Term& t) {
    const std::string& op = t.op().text();
    if (t.size() == 0) {
        if (const auto number = decimal(op)) return constant(*number);
        return {{{}, Polynomial::of(op)}};
    }
    std::vector<Piecewise> arguments;
    if (op == "leaf") return {{{}, Polynomial::of(to_string(t))}};
    for (const Term& child : t.children()) arguments.push_back(read(child));
    if (arguments.size() == 2 && (op == "+" || op == "-" || op == "*")) return arithmetic(arguments[0], arguments[1], op[0]);
    if (arguments.size() == 2 && (op == "max" || op == "min")) return extreme(arguments[0], arguments[1], op == "max");
    if (arguments.size() == 2 && op == "/") return divided(arguments[0], arguments[1]);
    if (arguments.size() == 1 && op == "copy") return arguments[0];
    if (arguments.size() == 1 && op == "square") return arithmetic(arguments[0], arguments[0], '*');
    const bool basic = op == "exp" || op == "sqrt" || op == "tanh" || op == "erf" || op == "floor" || op == "round";
    if (const ElementFunction* f = basic ? nullptr : find_function(op); f && t.size() == static_cast<std::size_t>(f->operands) + f->parameters.size())
        return read(expanded(*f, {t.children().begin(), t.children().end()}));
    return applied(op, arguments);
}

}  // namespace

std::optional<mpq_class> decimal(const std::string& text) {
    std::string digits;
    int below = 0, power = 0;
    bool point = false, any = false;
    std::size_t i = 0;
    const bool negative = !text.empty() && text[0] == '-';
    for (i = negative ? 1 : 0; i < text.size(); ++i) {
        if (text[i] >= '0' && text[i] <= '9')
            digits += text[i], below += point, any = true;
        else if (text[i] == '.' && !point)
            point = true;
        else
            break;
    }
    if (!any || digits.size() > 400) return {};
    if (i < text.size()) {
        if (text[i] != 'e' && text[i] != 'E') return {};
        std::size_t read = 0;
        try {
            power = std::stoi(text.substr(i + 1), &read);
        } catch (const std::exception&) {
            return {};
        }
        if (i + 1 + read != text.size() || std::abs(power) > 400) return {};
    }
    mpz_class scale;
    mpz_ui_pow_ui(scale.get_mpz_t(), 10, static_cast<unsigned long>(std::abs(power - below)));
    mpq_class value = power >= below ? mpq_class(mpz_class(digits, 10) * scale) : mpq_class(mpz_class(digits, 10), scale);
    value.canonicalize();
    return negative ? mpq_class(-value) : value;
}

std::optional<Piecewise> piecewise(const Term& scalar) {
    try {
        return read(scalar);
    } catch (const TooMany&) {
        return {};
    }
}

bool same_function(const Piecewise& a, const Piecewise& b, const SignConditions& where) {
    for (const Piece& p : a)
        for (const Piece& q : b) {
            const Polynomial difference = p.value - q.value;
            if (difference.is_zero()) continue;
            SignConditions here = both(both(where, p.where), q.where);
            here.push_back({difference, true});
            if (!impossible(here)) return false;
            here.back().p = Polynomial() - difference;
            if (!impossible(here)) return false;
        }
    return true;
}

bool impossible(const SignConditions& conditions) { return never_met(conditions); }

}  // namespace loopegg
