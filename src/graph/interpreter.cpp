#include "graph/interpreter.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "graph/interpret_site.hpp"
#include "graph/operators.hpp"

namespace loopegg {
namespace {

using Inputs = std::vector<const Tensor*>;

Tensor zeros(const Shape& shape) { return {shape, std::vector<float>(static_cast<std::size_t>(element_count(shape)))}; }
std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

Tensor map(const Tensor& x, double (*f)(double)) {
    Tensor y = x;
    for (float& v : y.values) v = static_cast<float>(f(v));
    return y;
}

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
template <class Visit> void each_element(const Shape& shape, const std::vector<std::vector<std::int64_t>>& strides, Visit visit) {
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

template <class Combine> Tensor elementwise(const Node& node, const Inputs& in, Combine combine) {
    Tensor y = zeros(node.shape);
    each_element(node.shape, {broadcast_strides(in[0]->shape, node.shape), broadcast_strides(in[1]->shape, node.shape)},
                 [&](std::int64_t i, const std::vector<std::int64_t>& o) { y.values[at(i)] = combine(in[0]->values[at(o[0])], in[1]->values[at(o[1])]); });
    return y;
}

Tensor batch_norm(const Node& node, const Weights& weights, const Tensor& x) {
    auto parameter = [&](const char* name) -> const std::vector<float>& { return weights.at(node.name + name).values; };
    const auto &gamma = parameter(".weight"), &beta = parameter(".bias"), &mean = parameter(".running_mean"), &variance = parameter(".running_var");
    Tensor y = x;
    std::int64_t channels = x.shape[1], inner = element_count(x.shape) / (x.shape[0] * channels);
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(y.values.size()); ++i) {
        std::size_t c = at(i / inner % channels);
        y.values[at(i)] = static_cast<float>((x.values[at(i)] - double{mean[c]}) / std::sqrt(double{variance[c]} + node.real("eps")) * gamma[c] + beta[c]);
    }
    return y;
}

Tensor layer_norm(const Node& node, const Weights& weights, const Tensor& x) {
    const auto &gamma = weights.at(node.name + ".weight").values, &beta = weights.at(node.name + ".bias").values;
    Tensor y = x;
    std::size_t width = at(x.shape.back());
    for (std::size_t row = 0; row < y.values.size(); row += width) {
        double mean = 0, variance = 0;
        for (std::size_t i = 0; i < width; ++i) mean += x.values[row + i];
        mean /= static_cast<double>(width);
        for (std::size_t i = 0; i < width; ++i) variance += (x.values[row + i] - mean) * (x.values[row + i] - mean);
        variance /= static_cast<double>(width);
        for (std::size_t i = 0; i < width; ++i) y.values[row + i] = static_cast<float>((x.values[row + i] - mean) / std::sqrt(variance + node.real("eps")) * gamma[i] + beta[i]);
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
    const auto &k = node.integers("kernel"), &s = node.integers("stride"), &p = node.integers("padding");
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

Tensor transpose(const Node& node, const Tensor& x) {
    Tensor y = zeros(node.shape);
    std::vector<std::int64_t> strides(x.shape.size(), 1), ordered;
    for (std::size_t i = x.shape.size(); i-- > 1;) strides[i - 1] = strides[i] * x.shape[i];
    for (std::int64_t d : node.integers("order")) ordered.push_back(strides[at(d)]);
    each_element(node.shape, {ordered}, [&](std::int64_t i, const std::vector<std::int64_t>& o) { y.values[at(i)] = x.values[at(o[0])]; });
    return y;
}

Tensor scale(const Node& node, const Tensor& x) {
    Tensor y = x;
    for (float& v : y.values) v = static_cast<float>(v * node.real("value"));
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
    {"relu", [](const Node&, const Weights&, const Inputs& in) { return map(*in[0], [](double v) { return v > 0 ? v : v < 0 ? 0 : v; }); }},   // NaN stays
    {"relu6", [](const Node&, const Weights&, const Inputs& in) { return map(*in[0], [](double v) { return v < 0 ? 0 : v > 6 ? 6 : v; }); }},
    {"silu", [](const Node&, const Weights&, const Inputs& in) { return map(*in[0], [](double v) { return v / (1 + std::exp(-v)); }); }},
    {"gelu", [](const Node&, const Weights&, const Inputs& in) { return map(*in[0], [](double v) { return v / 2 * (1 + std::erf(v / std::sqrt(2.0))); }); }},
    {"softmax", [](const Node& n, const Weights&, const Inputs& in) { return softmax(n, *in[0]); }},
    {"add", [](const Node& n, const Weights&, const Inputs& in) { return elementwise(n, in, [](float a, float b) { return a + b; }); }},
    {"mul", [](const Node& n, const Weights&, const Inputs& in) { return elementwise(n, in, [](float a, float b) { return a * b; }); }},
    {"scale", [](const Node& n, const Weights&, const Inputs& in) { return scale(n, *in[0]); }},
    {"concat", [](const Node& n, const Weights&, const Inputs& in) { return concat(n, in); }},
    {"max_pool", [](const Node& n, const Weights&, const Inputs& in) { return pool(n, *in[0], true); }},
    {"avg_pool", [](const Node& n, const Weights&, const Inputs& in) { return pool(n, *in[0], false); }},
    {"global_avg_pool", [](const Node& n, const Weights&, const Inputs& in) { return global_avg_pool(n, *in[0]); }},
    {"flatten", reshaped},
    {"reshape", reshaped},
    {"transpose", [](const Node& n, const Weights&, const Inputs& in) { return transpose(n, *in[0]); }},
    {"parameter", [](const Node& n, const Weights& w, const Inputs&) { return w.at(n.name); }},
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
    std::map<std::string, int> readers;   // still to come
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
    require(row != std::end(rows), "the interpreter lacks an operator of the table");
    Tensor value = row->run(node, weights, inputs);
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
