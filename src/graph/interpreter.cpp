#include "graph/interpreter.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "graph/functions.hpp"
#include "graph/interpret_site.hpp"
#include "graph/loop_operators.hpp"
#include "graph/opaque.hpp"
#include "graph/operators.hpp"
#include "graph/place.hpp"

namespace loopegg {
namespace {

using Inputs = std::vector<const Tensor*>;

Tensor zeros(const Shape& shape) { return {shape, std::vector<float>(static_cast<std::size_t>(element_count(shape)))}; }
// Row-major strides, with 0 where a dimension of 1 stretches over the result's.
std::vector<std::int64_t> broadcast_strides(const Shape& shape, const Shape& result) {
    std::vector<std::int64_t> strides(result.size(), 0);
    std::int64_t stride = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
        strides[i + result.size() - shape.size()] = shape[i] == 1 ? 0 : stride;
        stride *= shape[i];
    }
    return strides;
}

// Visits the result's elements in order with the offsets that the strides give.
template <class Visit>
void each_element(const Shape& shape, const std::vector<std::vector<std::int64_t>>& strides, Visit visit) {
    std::vector<std::int64_t> index(shape.size(), 0), offsets(strides.size(), 0);
    for (std::int64_t flat = 0, count = element_count(shape); flat < count; ++flat) {
        visit(flat, offsets);
        for (std::size_t d = shape.size(); d-- > 0;) {
            bool wraps = ++index[d] == shape[d];
            for (std::size_t t = 0; t < strides.size(); ++t) offsets[t] += wraps ? -strides[t][d] * (shape[d] - 1) : strides[t][d];
            if (!wraps) break;
            index[d] = 0;
        }
    }
}

// Any element function. Sums and products of two float32 are rounded once, as machines do.
Tensor element_function(const Node& node, const Inputs& in) {
    const ElementFunction& f = *find_function(node.op);
    const ReadyFunction& ready = ready_function(f);
    Tensor y = zeros(node.shape);
    std::vector<std::vector<std::int64_t>> strides;
    for (const Tensor* x : in) strides.push_back(broadcast_strides(x->shape, node.shape));
    std::vector<double> operands(in.size());
    for (const FunctionParameter& p : f.parameters) operands.push_back(node.real(p.name));
    each_element(node.shape, strides, [&](std::int64_t i, const std::vector<std::int64_t>& o) {
        for (std::size_t k = 0; k < in.size(); ++k) operands[k] = in[k]->values[at(o[k])];
        y.values[at(i)] = static_cast<float>(ready(operands.data()));
    });
    return y;
}

Tensor batch_norm(const Node& node, const Weights& weights, const Tensor& x) {
    auto parameter = [&](const char* name) -> const std::vector<float>& { return weights.at(node.name + name).values; };
    const auto &gamma = parameter(".weight"), &beta = parameter(".bias"), &mean = parameter(".running_mean"), &variance = parameter(".running_var");
    const double eps = node.real("eps");
    Tensor y = x;
    std::int64_t channels = x.shape[1], inner = element_count(x.shape) / (x.shape[0] * channels);
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(y.values.size()); ++i) {
        std::size_t c = at(i / inner % channels);
        y.values[at(i)] = static_cast<float>((x.values[at(i)] - double{mean[c]}) / std::sqrt(double{variance[c]} + eps) * gamma[c] + beta[c]);
    }
    return y;
}

Tensor layer_norm(const Node& node, const Weights& weights, const Tensor& x) {
    const auto &gamma = weights.at(node.name + ".weight").values, &beta = weights.at(node.name + ".bias").values;
    const double eps = node.real("eps");
    Tensor y = x;
    std::size_t width = at(x.shape.back());
    for (std::size_t row = 0; row < y.values.size(); row += width) {
        double mean = 0, variance = 0;
        for (std::size_t i = 0; i < width; ++i) mean += x.values[row + i];
        mean /= static_cast<double>(width);
        for (std::size_t i = 0; i < width; ++i) variance += (x.values[row + i] - mean) * (x.values[row + i] - mean);
        variance /= static_cast<double>(width);
        const double deviation = std::sqrt(variance + eps);
        for (std::size_t i = 0; i < width; ++i) y.values[row + i] = static_cast<float>((x.values[row + i] - mean) / deviation * gamma[i] + beta[i]);
    }
    return y;
}

Tensor softmax(const Node& node, const Tensor& x) {
    std::int64_t axis = node.integer("axis"), rank = static_cast<std::int64_t>(x.shape.size());
    if (axis < 0) axis += rank;
    std::int64_t width = x.shape[at(axis)], inner = 1;
    for (std::int64_t d = axis + 1; d < rank; ++d) inner *= x.shape[at(d)];
    Tensor y = x;
    for (std::int64_t row = 0; row < element_count(x.shape) / width; ++row) {
        std::int64_t start = row / inner * inner * width + row % inner;
        double peak = -INFINITY, sum = 0;
        for (std::int64_t i = 0; i < width; ++i) peak = std::max(peak, double{x.values[at(start + i * inner)]});
        for (std::int64_t i = 0; i < width; ++i) sum += std::exp(x.values[at(start + i * inner)] - peak);
        for (std::int64_t i = 0; i < width; ++i) y.values[at(start + i * inner)] = static_cast<float>(std::exp(x.values[at(start + i * inner)] - peak) / sum);
    }
    return y;
}

Tensor concat(const Node& node, const Inputs& in) {
    Tensor y = zeros(node.shape);
    std::int64_t axis = node.integer("axis"), rank = static_cast<std::int64_t>(node.shape.size());
    if (axis < 0) axis += rank;
    std::int64_t inner = 1;
    for (std::int64_t d = axis; d < rank; ++d) inner *= node.shape[at(d)];
    std::int64_t outer = element_count(node.shape) / inner, offset = 0;
    for (const Tensor* x : in) {
        std::int64_t part = element_count(x->shape) / outer;
        for (std::int64_t o = 0; o < outer; ++o) std::copy_n(x->values.begin() + o * part, part, y.values.begin() + o * inner + offset);
        offset += part;
    }
    return y;
}

Tensor pool(const Node& node, const Tensor& x, bool take_max) {
    Tensor y = zeros(node.shape);
    const auto &k = node.integers("kernel"), &s = node.integers("stride"), &p = node.integers("padding");  // padding at the end shows in the shape
    bool count_padding = !take_max && node.flag("count_padding");
    std::int64_t h = x.shape[2], w = x.shape[3], oh = node.shape[2], ow = node.shape[3];
    for (std::int64_t plane = 0; plane < x.shape[0] * x.shape[1]; ++plane)
        for (std::int64_t i = 0; i < oh; ++i)
            for (std::int64_t j = 0; j < ow; ++j) {
                double peak = -INFINITY, sum = 0;
                std::int64_t seen = 0;
                for (std::int64_t a = i * s[0] - p[0]; a < i * s[0] - p[0] + k[0]; ++a)
                    for (std::int64_t b = j * s[1] - p[1]; b < j * s[1] - p[1] + k[1]; ++b) {
                        if (a < 0 || a >= h || b < 0 || b >= w) continue;
                        double v = x.values[at((plane * h + a) * w + b)];
                        peak = v < peak || peak != peak ? peak : v, sum += v, ++seen;
                    }
                double divisor = static_cast<double>(count_padding ? k[0] * k[1] : seen);
                y.values[at((plane * oh + i) * ow + j)] = static_cast<float>(take_max ? peak : sum / divisor);
            }
    return y;
}

Tensor global_avg_pool(const Node& node, const Tensor& x) {
    Tensor y = zeros(node.shape);
    std::size_t inner = at(x.shape[2] * x.shape[3]);
    for (std::size_t plane = 0; plane < y.values.size(); ++plane) {
        double sum = 0;
        for (std::size_t i = 0; i < inner; ++i) sum += x.values[plane * inner + i];
        y.values[plane] = static_cast<float>(sum / static_cast<double>(inner));
    }
    return y;
}

std::vector<std::int64_t> strides_of(const Shape& shape) {
    std::vector<std::int64_t> strides(shape.size(), 1);
    for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
    return strides;
}

Tensor slice(const Node& node, const Tensor& x) {
    Tensor y = zeros(node.shape);
    std::vector<std::int64_t> strides = strides_of(x.shape);
    std::int64_t base = 0;
    for (std::size_t d = 0; d < strides.size(); ++d) base += strides[d] * node.integers("starts")[d], strides[d] *= node.integers("steps")[d];
    each_element(node.shape, {strides}, [&](std::int64_t i, const std::vector<std::int64_t>& o) { y.values[at(i)] = x.values[at(base + o[0])]; });
    return y;
}

Tensor pad(const Node& node, const Tensor& x) {
    Tensor y = zeros(node.shape);
    std::fill(y.values.begin(), y.values.end(), static_cast<float>(node.real("value")));
    const std::vector<std::int64_t> strides = strides_of(y.shape);
    std::int64_t base = 0;
    for (std::size_t d = 0; d < strides.size(); ++d) base += strides[d] * node.integers("before")[d];
    each_element(x.shape, {strides}, [&](std::int64_t i, const std::vector<std::int64_t>& o) { y.values[at(base + o[0])] = x.values[at(i)]; });
    return y;
}

Tensor expand(const Node& node, const Tensor& x) {
    Tensor y = zeros(node.shape);
    each_element(node.shape, {broadcast_strides(x.shape, node.shape)},
                 [&](std::int64_t i, const std::vector<std::int64_t>& o) { y.values[at(i)] = x.values[at(o[0])]; });
    return y;
}

Tensor reduce(const Node& node, const Tensor& x) {
    const auto& axes = node.integers("axes");
    std::int64_t width = 1, inner = 1;
    for (std::int64_t d = axes.front(); d < static_cast<std::int64_t>(x.shape.size()); ++d) (d <= axes.back() ? width : inner) *= x.shape[at(d)];
    Tensor y = zeros(node.shape);
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(y.values.size()); ++i) {
        double sum = 0, peak = -INFINITY;
        for (std::int64_t k = 0; k < width; ++k) {
            const double v = x.values[at((i / inner * width + k) * inner + i % inner)];
            sum += v, peak = v < peak || peak != peak ? peak : v;
        }
        y.values[at(i)] = static_cast<float>(node.op == "reduce_max" ? peak : node.op == "reduce_sum" ? sum : sum / static_cast<double>(width));
    }
    return y;
}

Tensor transpose(const Node& node, const Tensor& x) {
    Tensor y = zeros(node.shape);
    std::vector<std::int64_t> strides = strides_of(x.shape), ordered;
    for (std::int64_t d : node.integers("order")) ordered.push_back(strides[at(d)]);
    each_element(node.shape, {ordered}, [&](std::int64_t i, const std::vector<std::int64_t>& o) { y.values[at(i)] = x.values[at(o[0])]; });
    return y;
}

Tensor scale(const Node& node, const Tensor& x) {
    const double value = node.real("value");
    Tensor y = x;
    for (float& v : y.values) v = static_cast<float>(v * value);
    return y;
}

struct Row {
    std::string_view op;
    Tensor (*run)(const Node& node, const Weights& weights, const Inputs& in);
};

constexpr auto reshaped = [](const Node& n, const Weights&, const Inputs& in) { return Tensor{n.shape, in[0]->values}; };

const Row rows[] = {
    {"conv2d", interpret_conv2d},
    {"linear", interpret_linear},
    {"matmul", interpret_matmul},
    {"batch_norm", [](const Node& n, const Weights& w, const Inputs& in) { return batch_norm(n, w, *in[0]); }},
    {"layer_norm", [](const Node& n, const Weights& w, const Inputs& in) { return layer_norm(n, w, *in[0]); }},
    {"softmax", [](const Node& n, const Weights&, const Inputs& in) { return softmax(n, *in[0]); }},
    {"scale", [](const Node& n, const Weights&, const Inputs& in) { return scale(n, *in[0]); }},
    {"concat", [](const Node& n, const Weights&, const Inputs& in) { return concat(n, in); }},
    {"max_pool", [](const Node& n, const Weights&, const Inputs& in) { return pool(n, *in[0], true); }},
    {"avg_pool", [](const Node& n, const Weights&, const Inputs& in) { return pool(n, *in[0], false); }},
    {"global_avg_pool", [](const Node& n, const Weights&, const Inputs& in) { return global_avg_pool(n, *in[0]); }},
    {"flatten", reshaped},
    {"reshape", reshaped},
    {"transpose", [](const Node& n, const Weights&, const Inputs& in) { return transpose(n, *in[0]); }},
    {"parameter", [](const Node& n, const Weights& w, const Inputs&) { return w.at(n.name); }},
    {"identity", reshaped},
    {"slice", [](const Node& n, const Weights&, const Inputs& in) { return slice(n, *in[0]); }},
    {"pad", [](const Node& n, const Weights&, const Inputs& in) { return pad(n, *in[0]); }},
    {"expand", [](const Node& n, const Weights&, const Inputs& in) { return expand(n, *in[0]); }},
    {"reduce_mean", [](const Node& n, const Weights&, const Inputs& in) { return reduce(n, *in[0]); }},
    {"reduce_sum", [](const Node& n, const Weights&, const Inputs& in) { return reduce(n, *in[0]); }},
    {"reduce_max", [](const Node& n, const Weights&, const Inputs& in) { return reduce(n, *in[0]); }},
    {"onnx", [](const Node& n, const Weights&, const Inputs& in) { return run_opaque(n, in); }},
};

Tensors evaluate(const Graph& graph, const Weights& weights, const Tensors& inputs, bool keep_all) {
    Tensors values;
    for (const GraphInput& input : graph.inputs) {
        auto given = inputs.find(input.name);
        if (given == inputs.end()) throw UserError(fmt::format("no value for the input '{}'", input.name));
        if (given->second.shape != input.shape)
            throw UserError(fmt::format("the input '{}' is {}, the network takes {}", input.name, to_string(given->second.shape), to_string(input.shape)));
        values[input.name] = given->second;
    }
    std::map<std::string, int> readers;  // still to come
    for (const Node& node : graph.nodes)
        for (const std::string& name : node.inputs) ++readers[name];
    for (const std::string& name : graph.outputs) ++readers[name];
    for (const Node& node : graph.nodes) {
        Inputs in;
        for (const std::string& name : node.inputs) in.push_back(&values.at(name));
        Tensor value = interpret_node(node, weights, in);
        values[node.name] = std::move(value);
        for (const std::string& name : node.inputs)
            if (--readers[name] == 0 && !keep_all) values.erase(name);
    }
    return values;
}

}  // namespace

Tensor interpret_node(const Node& node, const Weights& weights, const std::vector<const Tensor*>& inputs) {
    auto row = std::find_if(std::begin(rows), std::end(rows), [&](const Row& r) { return r.op == node.op; });
    const bool loops = find_loop_operator(node.op) != nullptr;
    require(row != std::end(rows) || loops || find_function(node.op), "the interpreter lacks an operator of the table");
    Tensor value = row != std::end(rows) ? row->run(node, weights, inputs) : loops ? interpret_loops(node, inputs) : element_function(node, inputs);
    require(value.shape == node.shape, "the interpreter and the operator table disagree on a shape");
    return value;
}

Tensors interpret(const Graph& graph, const Weights& weights, const Tensors& inputs) {
    Tensors values = evaluate(graph, weights, inputs, false), outputs;
    for (const std::string& name : graph.outputs) outputs[name] = values.at(name);
    return outputs;
}

Tensors interpret_all(const Graph& graph, const Weights& weights, const Tensors& inputs) { return evaluate(graph, weights, inputs, true); }

}  // namespace loopegg
