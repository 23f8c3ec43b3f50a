// Operators that work element by element.
#include <algorithm>
#include <map>

#include "graph/onnx/evaluate/tensors.hpp"

namespace loopegg::onnx_eval {
namespace {

using Unary = double (*)(double x, const OnnxNode& node);

double alpha(const OnnxNode& n, double absent) { return attr_float(n, "alpha", absent); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

double gelu(double x, const OnnxNode& n) {
    if (attr_text(n, "approximate", "none") == "tanh") return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    return x * 0.5 * (1 + std::erf(x * 0.70710678118654752440));
}

// What is no number is neither below nor above, and stays.
double between_0_and_1(double x) { return x < 0 ? 0 : x > 1 ? 1 : x; }

const std::map<std::string, Unary>& unaries() {
    using N = const OnnxNode&;
    static const std::map<std::string, Unary> all{
        {"Abs", [](double x, N) { return std::abs(x); }},
        {"Neg", [](double x, N) { return -x; }},
        {"Ceil", [](double x, N) { return std::ceil(x); }},
        {"Floor", [](double x, N) { return std::floor(x); }},
        {"Round", [](double x, N) { return std::nearbyint(x); }},
        {"Sqrt", [](double x, N) { return std::sqrt(x); }},
        {"Exp", [](double x, N) { return std::exp(x); }},
        {"Log", [](double x, N) { return std::log(x); }},
        {"Sin", [](double x, N) { return std::sin(x); }},
        {"Cos", [](double x, N) { return std::cos(x); }},
        {"Tan", [](double x, N) { return std::tan(x); }},
        {"Asin", [](double x, N) { return std::asin(x); }},
        {"Acos", [](double x, N) { return std::acos(x); }},
        {"Atan", [](double x, N) { return std::atan(x); }},
        {"Sinh", [](double x, N) { return std::sinh(x); }},
        {"Cosh", [](double x, N) { return std::cosh(x); }},
        {"Tanh", [](double x, N) { return std::tanh(x); }},
        {"Asinh", [](double x, N) { return std::asinh(x); }},
        {"Acosh", [](double x, N) { return std::acosh(x); }},
        {"Atanh", [](double x, N) { return std::atanh(x); }},
        {"Erf", [](double x, N) { return std::erf(x); }},
        {"Sigmoid", [](double x, N) { return sigmoid(x); }},
        {"Relu", [](double x, N) { return x < 0 ? 0 : x; }},
        {"Silu", [](double x, N) { return x * sigmoid(x); }},
        {"LeakyRelu", [](double x, N n) { return x < 0 ? x * alpha(n, 0.01) : x; }},
        {"Elu", [](double x, N n) { return x < 0 ? alpha(n, 1) * std::expm1(x) : x; }},
        {"Selu",
         [](double x, N n) { return attr_float(n, "gamma", 1.05070102214813232421875) * (x > 0 ? x : alpha(n, 1.67326319217681884765625) * std::expm1(x)); }},
        {"Celu", [](double x, N n) { return x < 0 ? alpha(n, 1) * std::expm1(x / alpha(n, 1)) : x; }},
        {"HardSigmoid", [](double x, N n) { return between_0_and_1(alpha(n, 0.2) * x + attr_float(n, "beta", 0.5)); }},
        {"HardSwish", [](double x, N) { return x * between_0_and_1(x / 6 + 0.5); }},
        {"Softplus", [](double x, N) { return softplus(x); }},
        {"Softsign", [](double x, N) { return x / (1 + std::abs(x)); }},
        {"Mish", [](double x, N) { return x * std::tanh(softplus(x)); }},
        {"Gelu", gelu},
        {"Swish", [](double x, N n) { return x * sigmoid(alpha(n, 1) * x); }},
        {"ThresholdedRelu", [](double x, N n) { return x > alpha(n, 1) ? x : 0; }},
        {"Shrink",
         [](double x, N n) {
             const double l = attr_float(n, "lambd", 0.5), b = attr_float(n, "bias", 0);
             return x < -l ? x + b : x > l ? x - b : 0;
         }},
        {"Reciprocal", [](double x, N) { return 1 / x; }},
        {"Sign", [](double x, N) { return std::isnan(x) ? x : static_cast<double>((x > 0) - (x < 0)); }},
    };
    return all;
}

Outputs unary(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor& x = need(in, 0);
    const Unary f = unaries().at(node.op);
    OnnxTensor y = make(element_type(x), x.dims);
    if (x.kind == Kind::int64 && (node.op == "Abs" || node.op == "Neg")) {  // beyond what a double holds
        for (std::size_t i = 0; i < x.integers.size(); ++i) {
            const auto v = static_cast<std::uint64_t>(x.integers[i]);
            y.integers[i] = node.op == "Neg" || x.integers[i] < 0 ? static_cast<std::int64_t>(0 - v) : x.integers[i];
        }
        return {cast(y, element_type(x))};
    }
    for (std::size_t i = 0, n = size_of(x); i < n; ++i) set(y, i, f(number(x, i), node));
    return {y};
}

Outputs tests(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor& x = need(in, 0);
    OnnxTensor y = make(boolean, x.dims);
    const bool up = attr_int(node, "detect_positive", 1) != 0, down = attr_int(node, "detect_negative", 1) != 0;
    for (std::size_t i = 0, n = size_of(x); i < n; ++i) {
        const double v = number(x, i);
        y.integers[i] = node.op == "Not" ? v == 0 : node.op == "IsNaN" ? std::isnan(v) : std::isinf(v) && (v > 0 ? up : down);
    }
    return {y};
}

std::int64_t power(std::int64_t x, std::int64_t y) {
    if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0;
    std::uint64_t out = 1, b = static_cast<std::uint64_t>(x);
    for (; y; y >>= 1, b *= b)
        if (y & 1) out *= b;
    return static_cast<std::int64_t>(out);
}

// By more bits than there are (or by a negative number, which is many): nothing is left but the sign.
std::int64_t shifted(std::int64_t x, std::int64_t by, int type, bool left) {
    const std::int64_t width = type == int8 || type == uint8 ? 8 : type == int16 || type == uint16 ? 16 : type == int32 || type == uint32 ? 32 : 64;
    const bool all = by < 0 || by >= width;
    if (left) return all ? 0 : static_cast<std::int64_t>(static_cast<std::uint64_t>(x) << by);
    if (type == uint64) return all ? 0 : static_cast<std::int64_t>(static_cast<std::uint64_t>(x) >> by);
    return all ? (x < 0 ? -1 : 0) : x >> by;
}

// Whole numbers wrap as processors do.
std::int64_t of_wholes(const std::string& op, std::int64_t x, std::int64_t y, const OnnxNode& node, int type) {
    const auto a = static_cast<std::uint64_t>(x), b = static_cast<std::uint64_t>(y);
    if (op == "Add" || op == "Sum") return static_cast<std::int64_t>(a + b);
    if (op == "Sub") return static_cast<std::int64_t>(a - b);
    if (op == "Mul") return static_cast<std::int64_t>(a * b);
    if (op == "Max") return std::max(x, y);
    if (op == "Min") return std::min(x, y);
    if (op == "Pow") return power(x, y);
    if (op == "BitwiseAnd") return x & y;
    if (op == "BitwiseOr") return x | y;
    if (op == "BitwiseXor") return x ^ y;
    if (op == "BitShift") return shifted(x, y, type, attr_text(node, "direction", "LEFT") == "LEFT");
    if (y == 0) return 0;  // undefined by the standard
    if (y == -1) return op == "Div" ? static_cast<std::int64_t>(0 - a) : 0;
    if (op == "Div") return x / y;
    const std::int64_t rest = x % y;
    return attr_int(node, "fmod", 0) == 0 && rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

double of_reals(const std::string& op, double x, double y, const OnnxNode& node) {
    if (op == "Add" || op == "Sum") return x + y;
    if (op == "Sub") return x - y;
    if (op == "Mul") return x * y;
    if (op == "Div") return x / y;
    if (op == "Pow") return std::pow(x, y);
    if (op == "Max") return std::isnan(x) || std::isnan(y) ? NAN : std::max(x, y);
    if (op == "Min") return std::isnan(x) || std::isnan(y) ? NAN : std::min(x, y);
    if (op == "PRelu") return x < 0 ? x * y : x;
    if (op == "Mod") {
        const double rest = std::fmod(x, y);
        return attr_int(node, "fmod", 0) == 0 && rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
    }
    problem("no such operator on real numbers");
}

OnnxTensor pair(const OnnxNode& node, const OnnxTensor& a, const OnnxTensor& b) {
    const Ints dims = broadcast(a.dims, b.dims);
    OnnxTensor y = make(element_type(a), dims);
    const bool whole_numbers = a.kind == Kind::int64 && b.kind == Kind::int64;
    each(dims, {broadcast_strides(a.dims, dims), broadcast_strides(b.dims, dims)}, [&](std::size_t i, const Ints& o) {
        if (whole_numbers)
            y.integers[i] = of_wholes(node.op, a.integers[at(o[0])], b.integers[at(o[1])], node, element_type(a));
        else
            set(y, i, of_reals(node.op, number(a, at(o[0])), number(b, at(o[1])), node));
    });
    return whole_numbers ? cast(y, element_type(a)) : y;
}

Outputs binary(const OnnxNode& node, Inputs in, std::int64_t) { return {pair(node, need(in, 0), need(in, 1))}; }

Outputs several(const OnnxNode& node, Inputs in, std::int64_t) {
    OnnxNode each_pair = node;
    if (node.op == "Mean") each_pair.op = "Sum";
    OnnxTensor y = need(in, 0);
    for (std::size_t i = 1; i < in.size(); ++i) y = pair(each_pair, y, need(in, i));
    if (node.op == "Mean")
        for (std::size_t i = 0, n = size_of(y); i < n; ++i) set(y, i, number(y, i) / static_cast<double>(in.size()));
    return {y};
}

bool compared(const std::string& op, auto x, auto y) {
    if (op == "Equal") return x == y;
    if (op == "Greater") return x > y;
    if (op == "Less") return x < y;
    if (op == "GreaterOrEqual") return x >= y;
    if (op == "LessOrEqual") return x <= y;
    if (op == "And") return x != 0 && y != 0;
    if (op == "Or") return x != 0 || y != 0;
    return (x != 0) != (y != 0);
}

Outputs comparison(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor &a = need(in, 0), &b = need(in, 1);
    const Ints dims = broadcast(a.dims, b.dims);
    OnnxTensor y = make(boolean, dims);
    const bool whole_numbers = a.kind == Kind::int64 && b.kind == Kind::int64, large = element_type(a) == uint64;
    each(dims, {broadcast_strides(a.dims, dims), broadcast_strides(b.dims, dims)}, [&](std::size_t i, const Ints& o) {
        const std::size_t p = at(o[0]), q = at(o[1]);
        y.integers[i] = large           ? compared(node.op, static_cast<std::uint64_t>(a.integers[p]), static_cast<std::uint64_t>(b.integers[q]))
                        : whole_numbers ? compared(node.op, a.integers[p], b.integers[q])
                                        : compared(node.op, number(a, p), number(b, q));
    });
    return {y};
}

Outputs where(const OnnxNode&, Inputs in, std::int64_t) {
    const OnnxTensor &c = need(in, 0), &a = need(in, 1), &b = need(in, 2);
    if (a.kind != b.kind) problem("the two choices are of different types");
    const Ints dims = broadcast(c.dims, broadcast(a.dims, b.dims));
    OnnxTensor y = make(element_type(a), dims);
    each(dims, {broadcast_strides(c.dims, dims), broadcast_strides(a.dims, dims), broadcast_strides(b.dims, dims)}, [&](std::size_t i, const Ints& o) {
        if (number(c, at(o[0])) != 0)
            copy_element(y, i, a, at(o[1]));
        else
            copy_element(y, i, b, at(o[2]));
    });
    return {y};
}

Outputs clip(const OnnxNode& node, Inputs in, std::int64_t) {
    OnnxTensor y = need(in, 0);
    const OnnxTensor *low = maybe(in, 1), *high = maybe(in, 2);
    if (y.kind == Kind::int64) {
        for (std::int64_t& v : y.integers) {
            if (low) v = std::max(v, whole(*low, 0));
            if (high) v = std::min(v, whole(*high, 0));
        }
        return {y};
    }
    const double from = low ? number(*low, 0) : attr_float(node, "min", -INFINITY), to = high ? number(*high, 0) : attr_float(node, "max", INFINITY);
    for (std::size_t i = 0, n = size_of(y); i < n; ++i) {
        const double v = number(y, i);
        if (!std::isnan(v)) set(y, i, std::min(std::max(v, from), to));
    }
    return {y};
}

Outputs cast_to(const OnnxNode& node, Inputs in, std::int64_t) {
    const int to = node.op == "CastLike" ? element_type(need(in, 1)) : static_cast<int>(attr_int(node, "to", 0));
    if (kind_of(to) == Kind::other) problem("a cast to a type that is not supported");
    OnnxTensor y = cast(need(in, 0), to);
    return {y};
}

Outputs bitwise_not(const OnnxNode&, Inputs in, std::int64_t) {
    OnnxTensor y = need(in, 0);
    if (y.kind != Kind::int64) problem("whole numbers are expected");
    for (std::int64_t& v : y.integers) v = ~v;
    return {cast(y, element_type(y))};
}

// The place of each element's scale and zero: one for all elements, or one for each place along an axis.
Ints steps_of_scales(const OnnxNode& node, const OnnxTensor& x, const OnnxTensor& scale, const OnnxTensor* zero) {
    Ints steps(x.dims.size(), 0);
    if (zero && size_of(*zero) != size_of(scale)) problem("there are other numbers of scales and of zeros");
    if (attr_int(node, "block_size", 0) != 0 || scale.dims.size() > 1) problem("scales for blocks of elements are not supported");
    if (scale.dims.empty() || size_of(scale) == 1) return steps;
    const std::int64_t axis = placed_axis(attr_int(node, "axis", 1), rank_of(x));
    if (scale.dims[0] != x.dims[at(axis)]) problem("there is not one scale for each place along its axis");
    steps[at(axis)] = 1;
    return steps;
}

Outputs quantize(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor &x = need(in, 0), &scale = need(in, 1), *zero = maybe(in, 2);
    const int type = zero ? element_type(*zero) : static_cast<int>(attr_int(node, "output_dtype", uint8));
    const std::optional<WholeRange> range = whole_range(type);
    if (!range) problem("it quantizes to a type that is not supported");
    OnnxTensor y = make(type, x.dims);
    each(x.dims, {steps_of_scales(node, x, scale, zero)}, [&](std::size_t i, const Ints& o) {
        const float scaled = static_cast<float>(number(x, i)) / static_cast<float>(number(scale, at(o[0])));
        const double placed = std::nearbyint(scaled) + (zero ? number(*zero, at(o[0])) : 0.0);
        y.integers[i] = static_cast<std::int64_t>(std::isnan(placed) ? 0.0 : std::clamp(placed, range->low, range->high));
    });
    return {y};
}

Outputs dequantize(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor &x = need(in, 0), &scale = need(in, 1), *zero = maybe(in, 2);
    OnnxTensor y = make(float32, x.dims);
    each(x.dims, {steps_of_scales(node, x, scale, zero)},
         [&](std::size_t i, const Ints& o) { set(y, i, (number(x, i) - (zero ? number(*zero, at(o[0])) : 0.0)) * number(scale, at(o[0]))); });
    return {y};
}

Outputs same(const OnnxNode&, Inputs in, std::int64_t) { return {need(in, 0)}; }

Outputs dropout(const OnnxNode& node, Inputs in, std::int64_t) {
    if (const OnnxTensor* training = maybe(in, 2); training && number(*training, 0) != 0) problem("Dropout in training mode is random");
    const OnnxTensor& x = need(in, 0);
    OnnxTensor mask = make(boolean, x.dims);
    std::fill(mask.integers.begin(), mask.integers.end(), 1);
    return node.outputs.size() > 1 ? Outputs{x, mask} : Outputs{x};
}

}  // namespace

Operation elementwise_operation(const std::string& op) {
    if (unaries().contains(op)) return unary;
    static const std::map<std::string, Operation> all{
        {"Add", binary},
        {"Sub", binary},
        {"Mul", binary},
        {"Div", binary},
        {"Pow", binary},
        {"Mod", binary},
        {"PRelu", binary},
        {"BitShift", binary},
        {"BitwiseAnd", binary},
        {"BitwiseOr", binary},
        {"BitwiseXor", binary},
        {"BitwiseNot", bitwise_not},
        {"Max", several},
        {"Min", several},
        {"Sum", several},
        {"Mean", several},
        {"Equal", comparison},
        {"Greater", comparison},
        {"Less", comparison},
        {"GreaterOrEqual", comparison},
        {"LessOrEqual", comparison},
        {"And", comparison},
        {"Or", comparison},
        {"Xor", comparison},
        {"Not", tests},
        {"IsNaN", tests},
        {"IsInf", tests},
        {"Where", where},
        {"Clip", clip},
        {"Cast", cast_to},
        {"CastLike", cast_to},
        {"QuantizeLinear", quantize},
        {"DequantizeLinear", dequantize},
        {"Identity", same},
        {"Dropout", dropout},
    };
    auto found = all.find(op);
    return found == all.end() ? nullptr : found->second;
}

}  // namespace loopegg::onnx_eval
