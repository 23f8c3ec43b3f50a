// The guards, lists and functions over whole numbers that every language has. Overflow and division by zero give no value.
#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "rules/language.hpp"

namespace loopegg {
namespace {

using Number = std::int64_t;
using Value = std::optional<Number>;

Value sum(Number a, Number b) {
    Number r;
    return __builtin_add_overflow(a, b, &r) ? Value{} : r;
}
Value difference(Number a, Number b) {
    Number r;
    return __builtin_sub_overflow(a, b, &r) ? Value{} : r;
}
Value product(Number a, Number b) {
    Number r;
    return __builtin_mul_overflow(a, b, &r) ? Value{} : r;
}
bool dividable(Number a, Number b) { return b != 0 && !(a == std::numeric_limits<Number>::min() && b == -1); }
Value exact_quotient(Number a, Number b) { return dividable(a, b) && a % b == 0 ? Value(a / b) : Value{}; }
Value floored(Number a, Number b) { return dividable(a, b) ? Value(a / b - (a % b != 0 && (a % b < 0) != (b < 0))) : Value{}; }
Value modulo(Number a, Number b) {
    if (!dividable(a, b)) return {};
    const Number rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
Value common_divisor(Number a, Number b) { return a > 0 && b > 0 ? Value(std::gcd(a, b)) : Value{}; }
Value smaller(Number a, Number b) { return std::min(a, b); }
Value larger(Number a, Number b) { return std::max(a, b); }

FunctionKind two(std::string name, std::string summary, Value (*f)(Number, Number), bool more = false) {
    return {std::move(name), {{"number", "number"}, more}, std::move(summary), [f](const Question& q) -> Value {
                Value result = q.arguments[0].number;
                for (std::size_t i = 1; i < q.arguments.size() && result; ++i) result = q.arguments[i].number ? f(*result, *q.arguments[i].number) : Value{};
                return result;
            }};
}

GuardKind compare(std::string name, std::string summary, bool (*holds)(Number, Number)) {
    return {name, {{"number", "number"}}, std::move(summary), [name, holds](const Question& q) -> Verdict {
                const Value a = q.arguments[0].number, b = q.arguments[1].number;
                if (!a || !b) return {false, "a number is not known"};
                const bool ok = holds(*a, *b);
                return {ok, fmt::format("{} {} {}{}", *a, name, *b, ok ? "" : " does not hold")};
            }};
}

std::vector<Term> numbers(const std::vector<Number>& values) {
    std::vector<Term> terms;
    for (Number v : values) terms.emplace_back(v);
    return terms;
}

constexpr std::size_t longest_list = 10'000;  // a longer list would make the e-graph too large to be of use

std::vector<Term> range(const Question& q) {
    const Value low = q.arguments[0].number, high = q.arguments[1].number;
    std::vector<Number> values;
    if (low && high)
        for (Number v = *low; v < *high && values.size() < longest_list; ++v) values.push_back(v);
    return numbers(values);
}

// The divisors other than 1 and the number itself, because a split by either of these changes nothing.
std::vector<Term> proper_divisors(const Question& q) {
    std::vector<Number> values;
    const Value n = q.arguments[0].number;
    if (!n || *n > Number{1} << 40) return {};
    for (Number k = 2; k * k <= *n; ++k)
        if (*n % k == 0) {
            values.push_back(k);
            if (k * k != *n) values.push_back(*n / k);
        }
    std::sort(values.begin(), values.end());
    return numbers(values);
}

std::vector<Term> powers(const Question& q) {
    const Value base = q.arguments[0].number, most = q.arguments[1].number;
    std::vector<Number> values;
    if (base && most && *base > 1)
        for (Value v = *base; v && *v <= *most; v = product(*v, *base)) values.push_back(*v);
    return numbers(values);
}

}  // namespace

std::span<const FunctionKind> common_functions() {
    static const std::array table{
        two("+", "the sum", sum, true),
        two("-", "the difference", difference),
        two("*", "the product", product, true),
        two("/", "the quotient; none unless it is whole", exact_quotient),
        two("floor-div", "the quotient, rounded down", floored),
        two("%", "the remainder, never negative for a positive divisor", modulo),
        two("min", "the smallest", smaller, true),
        two("max", "the largest", larger, true),
        two("gcd", "the greatest common divisor", common_divisor, true),
    };
    return table;
}

std::span<const GuardKind> common_guards() {
    static const std::array table{
        compare("=", "two numbers are equal", [](Number a, Number b) { return a == b; }),
        compare("!=", "two numbers differ", [](Number a, Number b) { return a != b; }),
        compare("<", "the first number is smaller", [](Number a, Number b) { return a < b; }),
        compare("<=", "the first number is not larger", [](Number a, Number b) { return a <= b; }),
        compare(">", "the first number is larger", [](Number a, Number b) { return a > b; }),
        compare(">=", "the first number is not smaller", [](Number a, Number b) { return a >= b; }),
        compare("divides", "the first number divides the second", [](Number a, Number b) { return dividable(b, a) && b % a == 0; }),
        GuardKind{"number",
                  {{"term"}},
                  "the term is a whole number",
                  [](const Question& q) -> Verdict {
                      return q.arguments[0].number ? Verdict{true, fmt::format("it is {}", *q.arguments[0].number)} : Verdict{false, "it is no number"};
                  }},
    };
    return table;
}

std::span<const ListKind> common_lists() {
    static const std::array table{
        ListKind{"range", {{"first", "end"}}, "the whole numbers from the first up to, not including, the end", range},
        ListKind{"proper-divisors", {{"number"}}, "the divisors of a number other than 1 and itself", proper_divisors},
        ListKind{"powers", {{"base", "most"}}, "the powers of a base up to a most: base, base*base, ...", powers},
    };
    return table;
}

}  // namespace loopegg
