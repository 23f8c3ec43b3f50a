#include "backends/lower/elementary.hpp"

#include <cmath>
#include <span>

namespace loopegg {
namespace {

using tv::Expr;
using tv::Fn;

Expr number(double v) { return tv::float_value(v); }
Expr plus(const Expr& a, const Expr& b) { return tv::binary(Fn::add, a, b); }
Expr times(const Expr& a, const Expr& b) { return tv::binary(Fn::mul, a, b); }
// Bounds x. NaN is neither below nor above the bounds, so it stays.
Expr between(double low, double high, const Expr& x) {
    return tv::select(tv::binary(Fn::lt, x, number(low)), number(low), tv::select(tv::binary(Fn::lt, number(high), x), number(high), x));
}

// Every number is below 1 or at least 0, and NaN is neither. (TVM folds x = x, and CUDA C has no literal of infinity.)
Expr is_number(const Expr& x) { return tv::binary(Fn::logical_or, tv::binary(Fn::lt, x, number(1)), tv::binary(Fn::ge, x, number(0))); }

// c[0] + c[1] x + ..., by Horner's rule.
Expr polynomial(std::span<const double> c, const Expr& x) {
    Expr sum = number(c.back());
    for (std::size_t i = c.size() - 1; i-- > 0;) sum = plus(times(sum, x), number(c[i]));
    return sum;
}

// ln 2 in two parts. The first ends in zeros, so that its product with a small whole number is exact.
constexpr double ln2_high = 0.693359375, ln2_low = -2.12194440054690583e-4;

// The Taylor series of e^r for |r| <= ln(2)/2. The omitted terms are below 1e-8.
constexpr double taylor[]{1, 1, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040};

// erf(x) = x P(x^2) / Q(x^2) up to where erf is 1 in single precision; fitted by weighted least squares to a relative error of 2e-8.
constexpr double erf_end = 3.92;
constexpr double erf_above[]{1.1283791463037556, 0.19039687203955127, 0.05274727639050306, 0.0037651588516199263, 0.000284864864806395, 2.050061845243394e-06};
constexpr double erf_below[]{1.0, 0.5020675779953031, 0.11410498592560812, 0.014968302071269868, 0.0011624104608258551, 3.809051668214621e-05};

}  // namespace

namespace {

constexpr double min_power = -87.3, max_power = 88.3;  // beyond these, e^x is no normal float

}  // namespace

Expr exponential(const Expr& x) {
    const Expr e = bounded_exponential(x);
    const Expr nothing = tv::select(tv::binary(Fn::lt, x, number(min_power)), number(0), e);
    return tv::select(tv::binary(Fn::lt, number(88.72283), x), times(e, e), nothing);  // the square of e is infinite
}

Expr bounded_exponential(const Expr& x) {
    const Expr in = between(min_power, max_power, x);
    const Expr n = tv::intrinsic("tirx.floor", {plus(times(in, number(1 / std::log(2.0))), number(0.5))});
    const Expr r = plus(plus(in, times(n, number(-ln2_high))), times(n, number(-ln2_low)));
    const Expr power = tv::with_bits((tv::truncate(n) + 127) * (1 << 23));  // 2^n: n in the exponent's bits
    return times(polynomial(taylor, r), power);
}

Expr error_function(const Expr& x) {
    const Expr in = between(-erf_end, erf_end, x), square = times(in, in);
    const Expr inside = times(in, tv::binary(Fn::div, polynomial(erf_above, square), polynomial(erf_below, square)));
    // Beyond erf_end the result is exactly 1 or -1, because a gelu multiplies 1 + erf(x) by x, however large x is.
    return tv::select(tv::binary(Fn::lt, x, number(-erf_end)), number(-1), tv::select(tv::binary(Fn::lt, number(erf_end), x), number(1), inside));
}

Expr larger(const Expr& a, const Expr& b) { return tv::select(tv::binary(Fn::lt, b, a), a, tv::select(is_number(a), b, a)); }
Expr smaller(const Expr& a, const Expr& b) { return tv::select(tv::binary(Fn::lt, a, b), a, tv::select(is_number(a), b, a)); }

}  // namespace loopegg
