// Operators that work element by element, and those that only rename.
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "graph/functions.hpp"
#include "graph/onnx/element_types.hpp"
#include "graph/onnx/export_domain.hpp"
#include "graph/onnx/importer.hpp"
#include "graph/operators.hpp"

namespace loopegg {
namespace {

// Runs of dimensions that an operand has or lacks together; our nests know four.
std::size_t runs_of(const Shape& a, const Shape& b) {
    const std::size_t n = std::max(a.size(), b.size());
    std::size_t runs = 0;
    int last = -1;
    for (std::size_t d = 0; d < n; ++d) {
        const std::int64_t x = d + a.size() >= n ? a[d + a.size() - n] : 1, y = d + b.size() >= n ? b[d + b.size() - n] : 1;
        if (x == 1 && y == 1) continue;
        const int kind = (x != 1) * 2 + (y != 1);
        runs += kind != last, last = kind;
    }
    return runs;
}

}  // namespace

bool OnnxImporter::function(const OnnxNode& node, const ElementFunction& f) {
    if (!computes_floats(node)) return false;
    Attrs attrs;
    for (const FunctionParameter& p : f.parameters) attrs[std::string(p.name)] = attr_float(node, std::string(p.name), p.in_onnx);
    put(node, std::string(f.name), {value(input(node, 0))}, std::move(attrs));
    return true;
}

bool OnnxImporter::gelu(const OnnxNode& node) {
    if (!computes_floats(node)) return false;
    put(node, attr_text(node, "approximate", "none") == "tanh" ? "gelu_tanh" : "gelu", {value(input(node, 0))});
    return true;
}

bool OnnxImporter::hard_sigmoid(const OnnxNode& node) {
    const bool torch = std::abs(attr_float(node, "alpha", 0.2) - 1.0 / 6) < 1e-7 && attr_float(node, "beta", 0.5) == 0.5;
    if (!computes_floats(node) || !torch) return false;
    put(node, "hard_sigmoid", {value(input(node, 0))});
    return true;
}

bool OnnxImporter::clip(const OnnxNode& node) {
    if (!computes_floats(node) || (has(node, 1) && !constant(node, 1)) || (has(node, 2) && !constant(node, 2))) return false;
    auto bound = [&](std::size_t i, const char* attr, double absent) {
        if (has(node, i)) return scalar_of(needed(node, i, "bound")).value_or(absent);
        return attr_float(node, attr, absent);
    };
    constexpr double large = 3.4028234663852886e38;
    double low = std::max(bound(1, "min", -INFINITY), -large), high = std::min(bound(2, "max", INFINITY), large);
    if (std::isnan(low) || std::isnan(high)) fail(node, "its bounds are not numbers");
    std::string x = value(input(node, 0));
    if (low == 0 && high > 1e30)
        put(node, "relu", {x});
    else if (low == 0 && high == 6)
        put(node, "relu6", {x});
    else
        put(node, "clip", {x}, {{"low", low}, {"high", high}});
    return true;
}

// Two operands, the smaller one stretched first where they meet in too many ways.
std::string OnnxImporter::put_pair(const OnnxNode& from, const std::string& op, const std::string& a, const std::string& b, bool last) {
    std::string x = a, y = b;
    const std::string name = last ? name_for(from) : unique((from.name.empty() ? from.outputs[0] : from.name) + ".part");
    if (runs_of(shape(a), shape(b)) > 4) {
        const std::size_t n = std::max(shape(a).size(), shape(b).size());
        for (std::string* v : {&x, &y}) {
            const Shape &own = shape(*v), &other = shape(v == &x ? b : a);
            Shape wanted(n, 0);
            bool stretches = false;
            for (std::size_t d = 0; d < n; ++d) {
                const std::int64_t mine = d + own.size() >= n ? own[d + own.size() - n] : 1, theirs = d + other.size() >= n ? other[d + other.size() - n] : 1;
                if (d + own.size() < n || (mine == 1 && theirs != 1)) wanted[d] = std::max(mine, theirs), stretches = true;
            }
            if (stretches) *v = put(name, v == &x ? "left" : "right", "expand", {*v}, {{"shape", wanted}});
        }
    }
    return put(Node{name, op, {x, y}});
}

bool OnnxImporter::binary(const OnnxNode& node, const ElementFunction& f) {
    if (!computes_floats(node)) return false;
    const OnnxTensor *left = constant(node, 0), *right = constant(node, 1);
    // A number that multiplies is no tensor of its own; but one with more dimensions than the other side gives them to the result.
    auto number = [&](const OnnxTensor* t, std::size_t other) -> std::optional<double> {
        if (!t || values_.contains(node.inputs[1 - other]) || constant(node, other)) return std::nullopt;
        if (static_cast<std::int64_t>(t->dims.size()) > rank(value(input(node, other)))) return std::nullopt;
        auto v = scalar_of(*t);
        return v && std::isfinite(*v) ? v : std::nullopt;
    };
    std::optional<double> a = number(left, 1), b = number(right, 0);
    if (node.op == "Mul" && (a || b)) {
        put(node, "scale", {value(input(node, a ? 1 : 0))}, {{"value", a ? *a : *b}});
        return true;
    }
    if (node.op == "Div" && b && *b != 0) {
        put(node, "scale", {value(input(node, 0))}, {{"value", 1 / *b}});
        return true;
    }
    std::string x = value(input(node, 0)), y = value(input(node, 1));
    result(node, put_pair(node, std::string(f.name), x, y, true));
    return true;
}

bool OnnxImporter::several(const OnnxNode& node) {
    if (!computes_floats(node) || node.inputs.empty()) return false;
    std::string total = value(input(node, 0));
    if (node.inputs.size() == 1) return identity(node);
    const std::string op = node.op == "Sum" ? "add" : node.op == "Max" ? "maximum" : "minimum";
    for (std::size_t i = 1; i < node.inputs.size(); ++i) total = put_pair(node, op, total, value(input(node, i)), i + 1 == node.inputs.size());
    result(node, total);
    return true;
}

// Whole powers up to four, roots, and their reciprocals; others are opaque.
bool OnnxImporter::power(const OnnxNode& node) {
    const OnnxTensor* t = constant(node, 1);
    const std::optional<double> e = t ? scalar_of(*t) : std::nullopt;
    if (!e || type_of(input(node, 0)) != onnx_type::float32 || (type_of(node.inputs[1]) != onnx_type::float32 && type_of(node.inputs[1]) != 7)) return false;
    std::string x = value(input(node, 0));
    if (static_cast<std::int64_t>(t->dims.size()) > rank(x)) return false;
    const double size = std::abs(*e);
    const bool inverse = *e < 0, root = size == 0.5, whole = size == 1 || size == 2 || size == 3 || size == 4;
    if (!root && !whole) return false;
    if (*e == 1) return identity(node);
    const std::string name = name_for(node);
    auto next = [&](const char* what, bool last, const std::string& op, std::vector<std::string> in) {
        return put(Node{last ? name : unique(name + "." + what), op, std::move(in)});
    };
    std::string y = x;
    if (root) y = next("root", !inverse, "sqrt", {x});
    if (size >= 2) y = next("square", size == 2 && !inverse, "mul", {x, x});
    if (size == 3) y = next("cube", !inverse, "mul", {y, x});
    if (size == 4) y = next("fourth", !inverse, "mul", {y, y});
    if (inverse) y = next("inverse", true, "reciprocal", {y});
    result(node, y);
    return true;
}

bool OnnxImporter::identity(const OnnxNode& node) {
    const OnnxTensor* t = constant(node, 0);
    if (node.op == "Dropout" && has(node, 2)) {
        const OnnxTensor* training = constant(node, 2);
        const OnnxTensor* ratio = has(node, 1) ? constant(node, 1) : nullptr;
        const bool off = (training && scalar_of(*training).value_or(1) == 0) || (has(node, 1) && ratio && scalar_of(*ratio).value_or(1) == 0);
        if (!off) fail(node, "Dropout in training mode is random; export the model for inference");
    }
    if (used(node, 1)) fail(node, "the mask of a Dropout is not supported");
    if (ours_ && t && node.op == "Identity")
        parameter(node.outputs[0], unique(node.name), *t);
    else if (ours_ && node.op == "Identity")
        put(node, "identity", {value(input(node, 0))});
    else {
        values_[node.outputs[0]] = value(input(node, 0));
        if (const int type = type_of(node.inputs[0]); type != onnx_type::float32) types_[node.outputs[0]] = type;
    }
    return true;
}

// A whole number or a truth value that travels as float32 is one already; the other way round something is lost.
bool OnnxImporter::cast(const OnnxNode& node) {
    const int from = type_of(input(node, 0));
    int to = node.op == "CastLike" ? type_of(input(node, 1)) : static_cast<int>(attr_int(node, "to", 0));
    if (to == onnx_type::float16 || to == onnx_type::bfloat16) {
        if (!how_.as_float32) fail(node, "the model computes in float16", "--as-float32 computes in float32 instead");
        to = onnx_type::float32;
    }
    auto wider = [](int a, int b) { return a == b || (a == 9 && (b == 6 || b == 7)) || (a == 6 && b == 7); };
    if (to != onnx_type::float32 && !wider(from, to)) return false;
    const std::string x = value(input(node, 0));
    values_[node.outputs[0]] = x;
    if (to != onnx_type::float32) types_[node.outputs[0]] = to;
    return true;
}

bool OnnxImporter::described(const OnnxNode& node) {
    Node made = described_node(unique(node.name), described_.at(node.name));
    for (std::string& in : made.inputs) in = value(in);
    put(made);
    const Node& done = graph_.nodes.back();
    for (const Parameter& p : parameters_of(done)) {
        auto found = constants_.find(p.name);
        if (found == constants_.end()) fail(node, fmt::format("its tensor '{}' is missing", p.name));
        set_weight(p.name, found->second);
    }
    if (element_count(done.shape) > (1 << 26)) fail(node, "its output is too large to be checked");
    if (expand_domain(done).nodes != groups_.at(node.name)) fail(fmt::format("the nodes that represent '{}' are not what its description says", node.name));
    result(node, done.name);
    return true;
}

}  // namespace loopegg
