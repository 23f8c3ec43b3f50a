#include "graph/operators.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "graph/functions.hpp"
#include "graph/loop_operators.hpp"
#include "graph/opaque.hpp"

namespace loopegg {
namespace {

using Ints = std::vector<std::int64_t>;

const Shape& input(const Node& node, std::size_t i = 0) { return node.input_shapes[i]; }

std::string listed(const Ints& values) {
    std::string text;
    for (std::int64_t v : values) text += (text.empty() ? "[" : ", ") + std::to_string(v);
    return text.empty() ? "[]" : text + "]";
}

void expect_rank(const Node& node, std::size_t rank, const char* layout) {
    if (input(node).size() != rank)
        throw NodeProblem{fmt::format("{} needs an input of {} dimensions ({}), '{}' is {}", node.op, rank, layout, node.inputs[0], to_string(input(node))),
                          "inputs.0"};
}

// An axis that may count from the end, as a place in [0, rank).
std::size_t axis_of(const Node& node, std::size_t rank) {
    std::int64_t axis = node.integer("axis"), r = static_cast<std::int64_t>(rank);
    if (axis < -r || axis >= r) throw NodeProblem{fmt::format("axis {} of a tensor with {} dimensions", axis, r), "attrs.axis"};
    return static_cast<std::size_t>(axis < 0 ? axis + r : axis);
}

Shape same(const Node& node) { return input(node); }

std::int64_t window_out(const Node& node, std::size_t d, const Ints& dilation) {
    static constexpr const char* names[] = {"height", "width"};
    std::int64_t size = input(node)[d + 2], kernel = node.integers("kernel")[d], pad = node.integers("padding")[d], stride = node.integers("stride")[d];
    std::int64_t end = node.attrs.contains("padding_end") ? node.integers("padding_end")[d] : pad;
    std::int64_t reach = dilation[d] * (kernel - 1) + 1, padded = size + pad + end;
    if (reach > padded)
        throw NodeProblem{fmt::format("a kernel that reaches over {} does not fit in an input of {} {} with padding {}", reach, names[d], size, pad),
                          "attrs.kernel"};
    return (padded - reach) / stride + 1;
}

Shape infer_conv2d(const Node& node) {
    expect_rank(node, 4, "n c h w");
    std::int64_t in = input(node)[1], out = node.integer("out_channels"), groups = node.integer("groups");
    if (in % groups) throw NodeProblem{fmt::format("groups {} does not divide the {} input channels", groups, in), "attrs.groups"};
    if (out % groups) throw NodeProblem{fmt::format("groups {} does not divide the {} output channels", groups, out), "attrs.groups"};
    const Ints& dilation = node.integers("dilation");
    return {input(node)[0], out, window_out(node, 0, dilation), window_out(node, 1, dilation)};
}

std::vector<Parameter> conv2d_parameters(const Node& node) {
    std::int64_t out = node.integer("out_channels");
    const Ints& k = node.integers("kernel");
    std::vector<Parameter> all{{node.name + ".weight", {out, input(node)[1] / node.integer("groups"), k[0], k[1]}}};
    if (node.flag("bias")) all.push_back({node.name + ".bias", {out}});
    return all;
}

std::vector<Axis> conv2d_axes(const Node& node) {
    std::int64_t groups = node.integer("groups");
    const Ints& k = node.integers("kernel");
    return {{"n", node.shape[0]},
            {"g", groups},
            {"co", node.shape[1] / groups},
            {"ci", input(node)[1] / groups, true},
            {"oh", node.shape[2]},
            {"ow", node.shape[3]},
            {"kh", k[0], true},
            {"kw", k[1], true}};
}

Shape infer_linear(const Node& node) {
    if (input(node).empty()) throw NodeProblem{"linear needs an input of at least one dimension", "inputs.0"};
    Shape out = input(node);
    out.back() = node.integer("out_features");
    return out;
}

std::vector<Parameter> linear_parameters(const Node& node) {
    std::int64_t out = node.integer("out_features");
    std::vector<Parameter> all{{node.name + ".weight", {out, input(node).back()}}};
    if (node.flag("bias")) all.push_back({node.name + ".bias", {out}});
    return all;
}

std::vector<Axis> linear_axes(const Node& node) {
    return {{"n", element_count(node.shape) / node.shape.back()}, {"co", node.shape.back()}, {"ci", input(node).back(), true}};
}

Shape infer_matmul(const Node& node) {
    const Shape &a = input(node, 0), &b = input(node, 1);
    if (a.size() < 2 || b.size() != a.size() || !std::equal(a.begin(), a.end() - 2, b.begin()))
        throw NodeProblem{fmt::format("matmul needs two inputs with equal leading dimensions, found {} and {}", to_string(a), to_string(b)), "inputs"};
    if (a[a.size() - 1] != b[b.size() - 2])
        throw NodeProblem{
            fmt::format("matmul of {} by {}: the inner dimensions {} and {} differ", to_string(a), to_string(b), a[a.size() - 1], b[b.size() - 2]), "inputs"};
    Shape out = a;
    out.back() = b.back();
    return out;
}

std::vector<Axis> matmul_axes(const Node& node) {
    const Shape& out = node.shape;
    std::int64_t rows = out[out.size() - 2], columns = out.back();
    return {{"b", element_count(out) / (rows * columns)}, {"i", rows}, {"j", columns}, {"k", input(node).back(), true}};
}

Shape infer_batch_norm(const Node& node) {
    if (input(node).size() < 2)
        throw NodeProblem{fmt::format("batch_norm needs channels in the second dimension, '{}' is {}", node.inputs[0], to_string(input(node))), "inputs.0"};
    return input(node);
}

std::vector<Parameter> batch_norm_parameters(const Node& node) {
    Shape channels{input(node)[1]};
    return {{node.name + ".weight", channels},
            {node.name + ".bias", channels},
            {node.name + ".running_mean", channels, false},
            {node.name + ".running_var", channels, false}};
}

Shape infer_layer_norm(const Node& node) {
    if (input(node).empty()) throw NodeProblem{"layer_norm needs an input of at least one dimension", "inputs.0"};
    return input(node);
}

std::vector<Parameter> layer_norm_parameters(const Node& node) {
    Shape last{input(node).back()};
    return {{node.name + ".weight", last}, {node.name + ".bias", last}};
}

Shape infer_softmax(const Node& node) {
    axis_of(node, input(node).size());
    return input(node);
}

// Dimensions are matched from the last one; a dimension of 1 stretches.
Shape infer_elementwise(const Node& node) {
    const Shape &a = input(node, 0), &b = input(node, 1);
    Shape out(std::max(a.size(), b.size()), 1);
    for (std::size_t i = 0; i < out.size(); ++i) {
        std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
        if (x != y && x != 1 && y != 1)
            throw NodeProblem{fmt::format("{} of {} and {}: {} and {} do not match", node.op, to_string(a), to_string(b), x, y), "inputs"};
        out[out.size() - 1 - i] = x == 1 ? y : x;
    }
    return out;
}

Shape infer_concat(const Node& node) {
    Shape out = input(node);
    std::size_t axis = axis_of(node, out.size());
    for (std::size_t i = 1; i < node.inputs.size(); ++i) {
        const Shape& other = input(node, i);
        bool fits = other.size() == out.size();
        for (std::size_t d = 0; fits && d < out.size(); ++d) fits = d == axis || other[d] == out[d];
        if (!fits || __builtin_add_overflow(out[axis], other[axis], &out[axis]))
            throw NodeProblem{fmt::format("concat along axis {}: {} does not fit to {}", axis, to_string(other), to_string(input(node))),
                              fmt::format("inputs.{}", i)};
    }
    return out;
}

Shape infer_pool(const Node& node) {
    expect_rank(node, 4, "n c h w");
    for (std::size_t d = 0; d < 2; ++d)
        if (2 * node.integers("padding")[d] > node.integers("kernel")[d])
            throw NodeProblem{"padding of more than half the kernel: some windows would see nothing", "attrs.padding"};
    Shape out{input(node)[0], input(node)[1], window_out(node, 0, {1, 1}), window_out(node, 1, {1, 1})};
    for (std::size_t d = 0; d < 2; ++d)
        if ((out[2 + d] - 1) * node.integers("stride")[d] - node.integers("padding")[d] >= input(node)[2 + d])
            throw NodeProblem{"so much padding at the end that the last window would see nothing", "attrs.padding_end"};
    return out;
}

Shape infer_global_pool(const Node& node) {
    expect_rank(node, 4, "n c h w");
    return {input(node)[0], input(node)[1], 1, 1};
}

Shape infer_flatten(const Node& node) {
    const Shape& in = input(node);
    std::size_t axis = axis_of(node, in.size());
    Shape out(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(axis));
    out.push_back(element_count({in.begin() + static_cast<std::ptrdiff_t>(axis), in.end()}));
    return out;
}

// 0 keeps the input's dimension at that place; one -1 takes what is left.
Shape infer_reshape(const Node& node) {
    const Shape& in = input(node);
    Shape out = node.integers("shape");
    std::int64_t known = 1, total = element_count(in);
    std::size_t open = out.size();
    for (std::size_t i = 0; i < out.size(); ++i) {
        if (out[i] == 0) {
            if (i >= in.size())
                throw NodeProblem{fmt::format("dimension {} of the shape is 0 (keep the input's), but the input is {}", i, to_string(in)), "attrs.shape"};
            out[i] = in[i];
        }
        if (out[i] == -1) {
            if (open != out.size()) throw NodeProblem{"more than one -1 in the shape", "attrs.shape"};
            open = i;
        } else if (__builtin_mul_overflow(known, out[i], &known)) {
            throw NodeProblem{"the shape is too large", "attrs.shape"};
        }
    }
    if (open != out.size() && known > 0 && total % known == 0) out[open] = total / known, known = total;
    if (known != total || std::count(out.begin(), out.end(), -1))
        throw NodeProblem{fmt::format("{} with {} elements cannot take the shape {}", to_string(in), total, listed(node.integers("shape"))), "attrs.shape"};
    return out;
}

Shape infer_transpose(const Node& node) {
    const Shape& in = input(node);
    const Ints& order = node.integers("order");
    Ints sorted = order;
    std::sort(sorted.begin(), sorted.end());
    bool each_once = sorted.size() == in.size();
    for (std::size_t i = 0; each_once && i < sorted.size(); ++i) each_once = sorted[i] == static_cast<std::int64_t>(i);
    if (!each_once) throw NodeProblem{fmt::format("the order {} does not name each dimension of {} once", listed(order), to_string(in)), "attrs.order"};
    Shape out;
    for (std::int64_t d : order) out.push_back(in[static_cast<std::size_t>(d)]);
    return out;
}

// One number a dimension.
const Ints& for_each_dimension(const Node& node, const char* attr) {
    const Ints& values = node.integers(attr);
    if (values.size() != input(node).size())
        throw NodeProblem{fmt::format("'{}' needs one number for each of the {} dimensions, found {}", attr, input(node).size(), values.size()),
                          fmt::format("attrs.{}", attr)};
    return values;
}

// An end beyond the dimension is its end.
Shape infer_slice(const Node& node) {
    const Ints &starts = for_each_dimension(node, "starts"), &ends = for_each_dimension(node, "ends"), &steps = for_each_dimension(node, "steps");
    Shape out = input(node);
    for (std::size_t d = 0; d < out.size(); ++d) {
        const std::int64_t end = std::min(ends[d], out[d]);
        if (starts[d] >= end) throw NodeProblem{fmt::format("a slice from {} to {} of a dimension of {} is empty", starts[d], ends[d], out[d]), "attrs.starts"};
        out[d] = (end - starts[d] - 1) / steps[d] + 1;
    }
    return out;
}

Shape infer_pad(const Node& node) {
    const Ints &before = for_each_dimension(node, "before"), &after = for_each_dimension(node, "after");
    Shape out = input(node);
    for (std::size_t d = 0; d < out.size(); ++d) out[d] += before[d] + after[d];
    return out;
}

// 0 keeps the input's dimension; others stretch a dimension of 1. New dimensions come first.
Shape infer_expand(const Node& node) {
    const Shape& in = input(node);
    Shape out = node.integers("shape");
    if (out.size() < in.size()) throw NodeProblem{fmt::format("{} cannot be stretched to fewer dimensions", to_string(in)), "attrs.shape"};
    const std::size_t more = out.size() - in.size();
    for (std::size_t d = 0; d < out.size(); ++d) {
        if (d < more && out[d] == 0) throw NodeProblem{"a new dimension needs a size", "attrs.shape"};
        if (d >= more && out[d] == 0) out[d] = in[d - more];
        if (d >= more && out[d] != in[d - more] && in[d - more] != 1)
            throw NodeProblem{fmt::format("{} cannot be stretched to {}", to_string(in), to_string(out)), "attrs.shape"};
    }
    return out;
}

// Over dimensions that are adjacent.
Shape infer_reduce(const Node& node) {
    const Shape& in = input(node);
    const Ints& axes = node.integers("axes");
    if (axes.empty()) throw NodeProblem{"at least one axis is needed", "attrs.axes"};
    for (std::size_t i = 0; i < axes.size(); ++i)
        if (axes[i] >= static_cast<std::int64_t>(in.size()) || (i > 0 && axes[i] != axes[i - 1] + 1))
            throw NodeProblem{fmt::format("the axes {} are not adjacent dimensions of {}", listed(axes), to_string(in)), "attrs.axes"};
    Shape out;
    for (std::size_t d = 0; d < in.size(); ++d) {
        const bool gone = std::count(axes.begin(), axes.end(), static_cast<std::int64_t>(d)) > 0;
        if (!gone)
            out.push_back(in[d]);
        else if (node.flag("keepdims"))
            out.push_back(1);
    }
    return out;
}

Shape infer_parameter(const Node& node) { return node.integers("shape"); }
std::vector<Parameter> own_parameter(const Node& node) { return {{node.name, node.integers("shape")}}; }

constexpr auto integer = AttrKind::integer;
constexpr auto integers = AttrKind::integers;

// Every element function is an operator.
void add_functions(std::vector<Operator>& all) {
    for (const ElementFunction& f : element_functions()) {
        Operator op{f.name, f.operands, f.operands, {}, f.operands == 1 ? same : infer_elementwise};
        for (const FunctionParameter& p : f.parameters) op.attrs.push_back({p.name, AttrKind::real, p.fallback});
        all.push_back(std::move(op));
    }
}

// So is every row of the operators with loops.
Shape infer_loops(const Node& node) {
    const LoopOperator& op = *find_loop_operator(node.op);
    return loop_nest(op, sizes_of(op, node)).output_shape();
}

void add_loop_operators(std::vector<Operator>& all) {
    for (const LoopOperator& row : loop_operators()) {
        const int inputs = static_cast<int>(row.inputs.size());
        Operator op{row.name, inputs, inputs, {}, infer_loops};
        for (const LoopAttribute& a : row.attributes) op.attrs.push_back(a.spec);
        all.push_back(std::move(op));
    }
}

}  // namespace

const std::vector<Operator>& operators() {
    static const AttrSpec kernel{"kernel", integers, {}, 2, 1}, stride{"stride", integers, Ints{1, 1}, 2, 1}, padding{"padding", integers, Ints{0, 0}, 2, 0};
    static const AttrSpec pool_stride{"stride", integers, {}, 2, 1, "kernel"}, bias{"bias", AttrKind::boolean, true}, eps{"eps", AttrKind::real, 1e-5};
    static const AttrSpec padding_end{"padding_end", integers, {}, 2, 0, "padding"}, axes{"axes", integers, {}, 0, 0},
        keepdims{"keepdims", AttrKind::boolean, true};
    static const std::vector<Operator> all = [] {
        std::vector<Operator> table{
            {"conv2d",
             1,
             1,
             {{"out_channels", integer, {}, 0, 1},
              kernel,
              stride,
              padding,
              {"dilation", integers, Ints{1, 1}, 2, 1},
              {"groups", integer, std::int64_t{1}, 0, 1},
              bias},
             infer_conv2d,
             conv2d_parameters,
             conv2d_axes},
            {"linear", 1, 1, {{"out_features", integer, {}, 0, 1}, bias}, infer_linear, linear_parameters, linear_axes},
            {"matmul", 2, 2, {}, infer_matmul, nullptr, matmul_axes},
            {"batch_norm", 1, 1, {eps}, infer_batch_norm, batch_norm_parameters},
            {"layer_norm", 1, 1, {eps}, infer_layer_norm, layer_norm_parameters},
            {"softmax", 1, 1, {{"axis", integer, std::int64_t{-1}, 0, -8}}, infer_softmax},
            {"scale", 1, 1, {{"value", AttrKind::real}}, same},
            {"concat", 1, 4096, {{"axis", integer, std::int64_t{1}, 0, -8}}, infer_concat},
            {"max_pool", 1, 1, {kernel, pool_stride, padding, padding_end}, infer_pool},
            {"avg_pool", 1, 1, {kernel, pool_stride, padding, padding_end, {"count_padding", AttrKind::boolean, true}}, infer_pool},
            {"global_avg_pool", 1, 1, {}, infer_global_pool},
            {"flatten", 1, 1, {{"axis", integer, std::int64_t{1}, 0, -8}}, infer_flatten},
            {"reshape", 1, 1, {{"shape", integers, {}, 0, -1}}, infer_reshape},
            {"transpose", 1, 1, {{"order", integers, {}, 0, 0}}, infer_transpose},
            {"identity", 1, 1, {}, same},
            {"slice", 1, 1, {{"starts", integers, {}, 0, 0}, {"ends", integers, {}, 0, 1}, {"steps", integers, {}, 0, 1}}, infer_slice},
            {"pad", 1, 1, {{"before", integers, {}, 0, 0}, {"after", integers, {}, 0, 0}, {"value", AttrKind::real, 0.0}}, infer_pad},
            {"expand", 1, 1, {{"shape", integers, {}, 0, 0}}, infer_expand},
            {"reduce_mean", 1, 1, {axes, keepdims}, infer_reduce},
            {"reduce_sum", 1, 1, {axes, keepdims}, infer_reduce},
            {"reduce_max", 1, 1, {axes, keepdims}, infer_reduce},
            {"parameter", 0, 0, {{"shape", integers, {}, 0, 1}}, infer_parameter, own_parameter},
            {"onnx", 0, 64, {{"node", AttrKind::text}, {"output", integer, std::int64_t{0}, 0, 0}}, infer_opaque},
        };
        add_functions(table);
        add_loop_operators(table);
        return table;
    }();
    return all;
}

const Operator* find_operator(std::string_view name) {
    for (const Operator& op : operators())
        if (op.name == name) return &op;
    return nullptr;
}

const Operator& operator_of(const Node& node) {
    const Operator* op = find_operator(node.op);
    require(op != nullptr, "a node of a complete graph has an unknown operator");
    return *op;
}

std::vector<Parameter> parameters_of(const Node& node) {
    const Operator& op = operator_of(node);
    return op.parameters ? op.parameters(node) : std::vector<Parameter>{};
}

std::vector<Axis> axes_of(const Node& node) {
    const Operator& op = operator_of(node);
    return op.axes ? op.axes(node) : std::vector<Axis>{};
}

bool is_site(const Node& node) { return operator_of(node).axes != nullptr; }

}  // namespace loopegg
