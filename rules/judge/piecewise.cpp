#include "rules/judge/piecewise.hpp"

#include <algorithm>

#include "graph/functions.hpp"
#include "rules/judge/real_constraints.hpp"

namespace loopegg {
namespace {

constexpr std::size_t most_pieces = 96;

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
    if (all.size() > most_pieces) throw TooMany{};
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
        if (more.size() > most_pieces) throw TooMany{};
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
    const bool basic = op == "exp" || op == "sqrt" || op == "tanh" || op == "erf" || op == "floor";
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
