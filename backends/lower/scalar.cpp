#include "backends/lower/scalar.hpp"

#include <optional>

#include "backends/lower/elementary.hpp"
#include "base/error.hpp"
#include "base/number.hpp"
#include "graph/functions.hpp"

namespace loopegg {
namespace {

using tv::Expr;
using tv::Fn;

Expr below(const Expr& x, double limit) { return tv::binary(Fn::lt, x, tv::float_value(limit)); }
Expr above(const Expr& x, double limit) { return tv::binary(Fn::lt, tv::float_value(limit), x); }
Expr sigmoid(const Expr& x) {
    return tv::binary(Fn::div, tv::float_value(1), tv::binary(Fn::add, tv::float_value(1), exponential(tv::binary(Fn::mul, x, tv::float_value(-1)))));
}
Expr hyperbolic_tangent(const Expr& x) {
    const Expr e = bounded_exponential(tv::binary(Fn::mul, x, tv::float_value(-2)));
    return tv::binary(Fn::div, tv::binary(Fn::sub, tv::float_value(1), e), tv::binary(Fn::add, tv::float_value(1), e));
}
Expr gelu(const Expr& x) {
    const Expr erf = error_function(tv::binary(Fn::mul, x, tv::float_value(0.70710678118654752440)));
    return tv::binary(Fn::mul, tv::binary(Fn::mul, x, tv::float_value(0.5)), tv::binary(Fn::add, tv::float_value(1), erf));
}

struct Binary {
    const char* name;
    Fn fn;
};
// The basic operations that machines have. Every other function is written by its formula.
constexpr Binary binaries[]{{"+", Fn::add}, {"-", Fn::sub}, {"*", Fn::mul}, {"/", Fn::div}};

bool is_literal(const Term& term) { return term.size() == 0 && number_in<double>(term.op().text()); }

// Where one operand is a constant, one comparison is enough. It is false for NaN, so NaN stays.
Expr extreme(const Term& term, const Expr& a, const Expr& b) {
    const bool most = term.op().text() == "max";
    if (is_literal(term[0])) return tv::select(most ? tv::binary(Fn::lt, b, a) : tv::binary(Fn::lt, a, b), a, b);
    if (is_literal(term[1])) return tv::select(most ? tv::binary(Fn::lt, a, b) : tv::binary(Fn::lt, b, a), b, a);
    return most ? larger(a, b) : smaller(a, b);
}

struct Unary {
    const char* name;
    Expr (*make)(const Expr&);
};
const Unary unaries[]{
    // These comparisons are false for NaN, so NaN stays. Each is one instruction of a processor.
    {"relu", [](const Expr& x) { return tv::select(below(x, 0), tv::float_value(0), x); }},
    {"relu6", [](const Expr& x) { return tv::select(below(x, 0), tv::float_value(0), tv::select(above(x, 6), tv::float_value(6), x)); }},
    {"sigmoid", sigmoid},
    {"silu", [](const Expr& x) { return tv::binary(Fn::mul, x, sigmoid(x)); }},
    {"gelu", gelu},
    {"tanh", hyperbolic_tangent},
    {"exp", exponential},
    {"sqrt", [](const Expr& x) { return tv::intrinsic("tirx.sqrt", {x}); }},
    {"square", [](const Expr& x) { return tv::binary(Fn::mul, x, x); }},
    {"erf", error_function},
    {"floor", [](const Expr& x) { return tv::intrinsic("tirx.floor", {x}); }},
    {"round", [](const Expr& x) { return tv::intrinsic("tirx.nearbyint", {x}); }},
    {"copy", [](const Expr& x) { return x; }},
};

}  // namespace

namespace {

// By shifts and masks: TVM simplifies divisions of such expressions for seconds.
constexpr std::int64_t half_bits = 16;
Expr high_half(const Expr& bits) { return tv::bitwise("prim.bitwise_and", bits, Expr(-0x10000)); }
Expr shifted_right(const Expr& bits) { return tv::bitwise("prim.right_shift", bits, Expr(half_bits)); }

// By its bits: a comparison of a number with itself is folded away.
constexpr std::int64_t infinity = 0x7f800000, quiet_nan = 0x7fc00000, without_sign = 0x7fffffff;
Expr is_nan(const Expr& x) { return less(Expr(infinity), tv::bitwise("prim.bitwise_and", tv::bits_of(x), Expr(without_sign))); }

// Half of the last kept place is added before the low bits are cut off. A NaN of an operation has none of its bits among these, and stays.
Expr rounded_to_tf32(const Expr& x) { return tv::with_bits(floor_div(tv::bits_of(x) + Expr(0x1000), 0x2000) * Expr(0x2000)); }
// The bits of a number with its nearest bf16 number in their high half, and anything in the low half. Where it is a tie, the last kept bit decides.
Expr bf16_bits(const Expr& x) {
    const Expr bits = tv::bits_of(x);
    const Expr rounded = tv::binary(Fn::add, bits, tv::binary(Fn::add, tv::bitwise("prim.bitwise_and", shifted_right(bits), Expr(1)), Expr(0x7fff)));
    return tv::select(is_nan(x), Expr(quiet_nan), rounded);  // rounding would carry into the exponent of a NaN, and make a number of it
}

// Of the size, and then with the sign. Denormals are whole numbers of 2^-24, and so are the digits of a number from 0.5 to 1.
Expr rounded_to_fp16(const Expr& x) {
    const Expr bits = tv::bits_of(x), whole = tv::bitwise("prim.bitwise_and", bits, Expr(without_sign)), size = tv::with_bits(whole);
    const Expr even = tv::bitwise("prim.bitwise_and", tv::bitwise("prim.right_shift", whole, Expr(13)), Expr(1));
    const Expr digits = tv::bitwise("prim.bitwise_and", tv::binary(Fn::add, whole, tv::binary(Fn::add, even, Expr(0xfff))), Expr(-0x2000));
    const Expr denormal = tv::binary(Fn::sub, tv::binary(Fn::add, size, tv::float_value(0.5)), tv::float_value(0.5));
    const Expr held = tv::select(below(size, 65520), tv::with_bits(digits), tv::with_bits(Expr(infinity)));
    const Expr rounded = tv::select(below(size, 0x1p-14), denormal, held);
    const Expr sign = tv::bitwise("prim.bitwise_and", bits, Expr(std::int64_t{-0x80000000LL}));
    return tv::select(is_nan(x), x, tv::with_bits(tv::bitwise("prim.bitwise_or", tv::bits_of(rounded), sign)));
}

}  // namespace

Expr rounded_to(const std::string& kind, const Expr& x) {
    if (kind == "fp16") return rounded_to_fp16(x);
    if (kind == "tf32") return rounded_to_tf32(x);
    if (kind == "bf16") return tv::with_bits(high_half(bf16_bits(x)));
    throw InternalFault("no lowering for the rounding '" + kind + "'");
}

Expr packed_bf16(const Expr& low, const Expr& high) {
    const Expr below = tv::bitwise("prim.bitwise_and", shifted_right(bf16_bits(low)), Expr(0xffff));
    return tv::with_bits(tv::bitwise("prim.bitwise_or", high_half(bf16_bits(high)), below));
}
Expr packed_by_warps(const std::string& kind, const Expr& low, const Expr& high) { return tv::outer_function(("loopegg_pack_" + kind).c_str(), {low, high}); }
Expr unpacked_bf16(const Expr& word, const Expr& half) {
    const Expr bits = tv::bits_of(word);
    const auto high = [&] { return tv::with_bits(high_half(bits)); };
    const auto low = [&] { return tv::with_bits(tv::bitwise("prim.left_shift", bits, Expr(half_bits))); };
    if (half.constant) return half.is(0) ? low() : high();
    return tv::select(less(half, 1), low(), high());
}

// A float32 from 2^23 on has no bits behind the point, so adding 1.5 * 2^23 leaves a small number, rounded to even, in the lowest bits.
Expr packed_bytes(const std::vector<Expr>& numbers, const Expr& inverse_scale, const Expr& zero) {
    std::optional<Expr> word;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const Expr scaled = tv::binary(Fn::add, tv::binary(Fn::mul, numbers[i], inverse_scale), zero);
        const Expr low = tv::select(below(scaled, 0), tv::float_value(0), scaled), held = tv::select(above(low, 255), tv::float_value(255), low);
        const Expr number = tv::select(is_nan(scaled), zero, held);  // no byte is a NaN: it counts as 0
        Expr byte = tv::bitwise("prim.bitwise_and", tv::bits_of(tv::binary(Fn::add, number, tv::float_value(12582912))), Expr(255));
        if (i > 0) byte = tv::bitwise("prim.left_shift", byte, Expr(static_cast<std::int64_t>(8 * i)));
        word = word ? tv::bitwise("prim.bitwise_or", *word, byte) : byte;
    }
    return tv::with_bits(*word);
}

Expr scalar(const Term& term, const std::function<Expr(const std::string&)>& leaf) {
    const std::string& op = term.op().text();
    if (term.size() == 0) {
        const auto value = number_in<double>(op);
        return value ? tv::float_value(*value) : leaf(op);
    }
    if (term.size() == 2)
        for (const Binary& b : binaries)
            if (op == b.name) return tv::binary(b.fn, scalar(term[0], leaf), scalar(term[1], leaf));
    if (op == "max" || op == "min") return extreme(term, scalar(term[0], leaf), scalar(term[1], leaf));
    if (op == "prelu") {  // above zero the slope is not used, even if it is NaN
        const Expr x = scalar(term[0], leaf);
        return tv::select(below(x, 0), tv::binary(Fn::mul, x, scalar(term[1], leaf)), x);
    }
    if (term.size() == 1)
        for (const Unary& u : unaries)
            if (op == u.name) return u.make(scalar(term[0], leaf));
    if (const ElementFunction* f = find_function(op)) {
        const std::vector<Term> operands(term.children().begin(), term.children().end());
        return scalar(expanded(*f, operands), leaf);
    }
    throw InternalFault("no lowering for the scalar function '" + op + "'");
}

}  // namespace loopegg
