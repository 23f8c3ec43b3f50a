#include "fisher/libtorch/executor.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/number.hpp"
#include "base/term.hpp"
#include "graph/functions.hpp"
#include "graph/graph.hpp"
#include "graph/loop_operators.hpp"
#include "graph/opaque.hpp"
#include "graph/operators.hpp"
#include "graph/weights.hpp"

namespace loopegg {
namespace {

// Scalar formulas over tensors, by LibTorch's functions, which know their own derivatives.

using Tensors = std::vector<at::Tensor>;

struct Basic {
    std::string_view name;
    at::Tensor (*apply)(const Tensors& x);
};

const Basic basics[] = {
    {"+", [](const Tensors& x) { return x[0] + x[1]; }},
    {"-", [](const Tensors& x) { return x[0] - x[1]; }},
    {"*", [](const Tensors& x) { return x[0] * x[1]; }},
    {"/", [](const Tensors& x) { return x[0] / x[1]; }},
    {"max", [](const Tensors& x) { return at::maximum(x[0], x[1]); }},
    {"min", [](const Tensors& x) { return at::minimum(x[0], x[1]); }},
    {"exp", [](const Tensors& x) { return at::exp(x[0]); }},
    {"sqrt", [](const Tensors& x) { return at::sqrt(x[0]); }},
    {"tanh", [](const Tensors& x) { return at::tanh(x[0]); }},
    {"erf", [](const Tensors& x) { return at::erf(x[0]); }},
    {"floor", [](const Tensors& x) { return at::floor(x[0]); }},
    {"round", [](const Tensors& x) { return x[0] + (at::round(x[0]) - x[0]).detach(); }},  // gradients pass through, as in training with rounding
};

// The value of a formula of basic and element functions. `leaf` gives the operands. Leaves that are numbers take their type from `like`.
at::Tensor formula_value(const Term& formula, const at::Tensor& like, const std::function<at::Tensor(const std::string& name)>& leaf) {
    const std::string& text = formula.op().text();
    if (formula.size() == 0) {
        const auto number = number_in<double>(text);
        return number ? at::scalar_tensor(*number, like.options()) : leaf(text);
    }
    const auto basic = std::find_if(std::begin(basics), std::end(basics), [&](const Basic& b) { return b.name == text; });
    if (basic == std::end(basics)) {
        const ElementFunction* f = find_function(text);
        require(f != nullptr, "a formula is made of basic functions and element functions");
        return formula_value(expanded(*f, {formula.children().begin(), formula.children().end()}), like, leaf);
    }
    Tensors parts;
    for (const Term& child : formula.children()) parts.push_back(formula_value(child, like, leaf));
    return basic->apply(parts);
}

// Operators with loops on LibTorch: every read is a strided view over all loops, and the formulas of the operator's row are applied to these views.

using Ints = std::vector<std::int64_t>;

// The element that each instance reads, one dimension for each axis.
at::Tensor seen_by_instances(const LoopRead& read, const LoopNest& nest, const at::Tensor& x) {
    const std::size_t rank = read.shape.size();
    Ints before(rank, 0), after(rank, 0), pads;
    for (std::size_t d = 0; d < rank; ++d) {
        const auto [low, high] = reach(read.index[d], nest.axes);
        before[d] = std::max<std::int64_t>(0, -low), after[d] = std::max<std::int64_t>(0, high + 1 - read.shape[d]);
    }
    for (std::size_t d = rank; d-- > 0;) pads.push_back(before[d]), pads.push_back(after[d]);  // LibTorch counts from the last dimension
    const at::Tensor padded = read.padded ? at::constant_pad_nd(x, pads, nest.identity()) : x.contiguous();
    Ints sizes, strides(nest.axes.size(), 0);
    std::int64_t offset = padded.storage_offset();
    for (const Axis& axis : nest.axes) sizes.push_back(axis.extent);
    for (std::size_t d = 0; d < rank; ++d) {
        const std::int64_t stride = padded.stride(static_cast<std::int64_t>(d));
        offset += (read.index[d].offset + before[d]) * stride;
        for (std::size_t a = 0; a < sizes.size(); ++a) strides[a] += read.index[d].coefficients[a] * stride;
    }
    return at::as_strided(padded, sizes, strides, offset);
}

at::Tensor run_loop_operator(const Node& node, const std::vector<at::Tensor>& inputs) {
    const LoopOperator& op = *find_loop_operator(node.op);
    const LoopNest nest = loop_nest(op, sizes_of(op, node));
    std::vector<at::Tensor> seen;
    for (std::size_t i = 0; i < nest.reads.size(); ++i) seen.push_back(seen_by_instances(nest.reads[i], nest, inputs[i]));
    const at::Tensor value = formula_value(nest.value, inputs[0], [&](const std::string& name) { return seen.at(name == "I" ? 0 : 1); });
    Ints reductions, order;
    for (std::size_t a = 0; a < nest.axes.size(); ++a)
        if (nest.axes[a].reduction) reductions.push_back(static_cast<std::int64_t>(a));
    at::Tensor y = value;
    if (!reductions.empty()) y = nest.combine == LoopCombine::max ? at::amax(value, reductions) : at::sum(value, reductions);
    for (std::size_t axis : nest.output)  // the places of the axes after the reductions are gone
        order.push_back(static_cast<std::int64_t>(axis) -
                        std::count_if(reductions.begin(), reductions.end(), [&](std::int64_t r) { return r < static_cast<std::int64_t>(axis); }));
    y = y.permute(order);
    return formula_value(nest.finish, y, [&](const std::string&) { return y; });
}

const at::Tensor& parameter(const TensorMap& all, const std::string& name) {
    auto found = all.find(name);
    if (found == all.end()) throw UserError(fmt::format("the weights lack '{}'", name));
    return found->second;
}

at::Tensor optional_parameter(const Node& node, const TensorMap& all, const char* suffix) {
    return node.flag("bias") ? parameter(all, node.name + suffix) : at::Tensor();
}

std::string restriction_key(const Node& node) {
    std::string key = node.op + to_string(node.domain) + to_string(node.shape);
    for (const Shape& s : node.input_shapes) key += "," + to_string(s);
    for (const auto& [name, value] : node.attrs)
        if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value))
            key += ";" + name + to_string(*list);
        else if (const auto* one = std::get_if<std::int64_t>(&value))
            key += fmt::format(";{}{}", name, *one);
    return key;
}

// Candidates that share a restriction ask for the same plan again and again, from several threads. There are few distinct plans.
std::shared_ptr<const RestrictedOperation> cached_plan(const Node& node) {
    static std::mutex mutex;
    static std::unordered_map<std::string, std::shared_ptr<const RestrictedOperation>> plans;
    std::string key = restriction_key(node);
    {
        std::lock_guard lock(mutex);
        if (auto found = plans.find(key); found != plans.end()) return found->second;
    }
    auto plan = plan_restricted(node);
    std::lock_guard lock(mutex);
    if (plans.size() > 4096) plans.clear();
    return plans.try_emplace(std::move(key), std::move(plan)).first->second;
}

at::Tensor sliced(const Node& node, at::Tensor x) {
    for (std::size_t d = 0; d < node.shape.size(); ++d)
        x = x.slice(static_cast<std::int64_t>(d), node.integers("starts")[d], node.integers("ends")[d], node.integers("steps")[d]);
    return x;
}

// Pads in LibTorch's order, which begins with the last dimension.
std::vector<std::int64_t> torch_pads(const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after) {
    std::vector<std::int64_t> pads;
    for (std::size_t d = before.size(); d-- > 0;) pads.push_back(before[d]), pads.push_back(after[d]);
    return pads;
}

at::Tensor padded(const Node& node, const at::Tensor& x) {
    return at::constant_pad_nd(x, torch_pads(node.integers("before"), node.integers("after")), node.real("value"));
}

at::Tensor uneven_pool(const Node& node, const at::Tensor& x) {
    const auto pads = torch_pads(node.integers("padding"), node.integers("padding_end"));
    const auto &k = node.integers("kernel"), &s = node.integers("stride");
    if (node.op == "max_pool") return at::max_pool2d(at::constant_pad_nd(x, pads, -INFINITY), k, s);
    const at::Tensor mean = at::avg_pool2d(at::constant_pad_nd(x, pads), k, s);
    if (node.flag("count_padding")) return mean;
    return mean / at::avg_pool2d(at::constant_pad_nd(at::ones_like(x.slice(0, 0, 1).slice(1, 0, 1)), pads), k, s);  // the share of each window that is inside
}

at::Tensor element_function(const ElementFunction& f, const Node& node, const std::vector<at::Tensor>& in) {
    std::vector<Term> operands;
    for (int i = 0; i < f.operands; ++i) operands.emplace_back("#" + std::to_string(i));
    for (const FunctionParameter& p : f.parameters) operands.emplace_back(fmt::format("{}", node.real(p.name)));
    return formula_value(expanded(f, operands), in[0], [&](const std::string& name) { return in[static_cast<std::size_t>(name[1] - '0')]; });
}

// A derivative passes where the operator only moves values. For other opaque operators the derivative is unknown.
at::Tensor opaque(const Node& node, const std::vector<at::Tensor>& in) {
    if (c10::GradMode::is_enabled() && in.size() == 1 && in[0].requires_grad())
        if (const auto places = places_moved(node)) {
            const at::Tensor index = at::tensor(at::ArrayRef<std::int64_t>(*places), at::kLong).to(in[0].device());
            return in[0].flatten().index_select(0, index).reshape(node.shape);
        }
    std::vector<Tensor> given;
    for (const at::Tensor& t : in) given.push_back(from_torch(t));
    std::vector<const Tensor*> inputs;
    for (const Tensor& t : given) inputs.push_back(&t);
    const at::Tensor y = to_torch(run_opaque(node, inputs));
    return in.empty() ? y : y.to(in[0].scalar_type());
}

}  // namespace

Executor::Executor(const Graph& graph, std::int64_t batch) : graph_(with_batch(graph, batch)) {
    std::unordered_map<std::string, std::ptrdiff_t> place;
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) place[graph_.inputs[i].name] = -1 - static_cast<std::ptrdiff_t>(i);
    for (std::size_t i = 1; i < graph_.inputs.size(); ++i) {
        const GraphInput& in = graph_.inputs[i];
        others_.push_back(in.dtype == "float32" ? to_torch(normal_tensor(in.shape, 1, in.name)) : at::zeros(in.shape, at::kFloat));
    }
    last_use_.assign(graph_.nodes.size(), 0);
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
        const Node& node = graph_.nodes[i];
        restricted_.push_back(node.domain.whole() ? nullptr : cached_plan(node));
        place[node.name] = static_cast<std::ptrdiff_t>(i);
        std::vector<std::ptrdiff_t>& from = sources_.emplace_back();
        for (const std::string& input : node.inputs) {
            from.push_back(place.at(input));
            if (from.back() >= 0) last_use_[static_cast<std::size_t>(from.back())] = i;
        }
    }
    for (const std::string& output : graph_.outputs) {
        results_.push_back(place.at(output));
        if (results_.back() >= 0) last_use_[static_cast<std::size_t>(results_.back())] = graph_.nodes.size();
    }
}

std::vector<at::Tensor> Executor::run(const std::vector<at::Tensor>& inputs, const TensorMap& parameters, NormMode norm, const Watch& watch,
                                      Statistics statistics) const {
    return run_from(0, std::vector<at::Tensor>(graph_.nodes.size()), {inputs, parameters, norm, watch, statistics});
}

std::vector<at::Tensor> Executor::run_after(const std::vector<at::Tensor>& first_nodes, const std::vector<at::Tensor>& inputs, const TensorMap& parameters,
                                            NormMode norm, const Watch& watch) const {
    std::vector<at::Tensor> values = first_nodes;
    values.resize(graph_.nodes.size());
    return run_from(first_nodes.size(), std::move(values), {inputs, parameters, norm, watch, {}});
}

std::vector<at::Tensor> Executor::run_from(std::size_t first, std::vector<at::Tensor> values, const Pass& pass) const {
    std::vector<at::Tensor> inputs = pass.inputs;
    if (inputs.size() == 1)  // the caller has images alone: the other inputs of the network are drawn once
        for (const at::Tensor& other : others_) inputs.push_back(other.to(inputs[0].scalar_type()));
    require(inputs.size() == graph_.inputs.size(), "one tensor for each input of the graph");
    for (std::size_t i = 0; i < inputs.size(); ++i)
        if (inputs[i].sizes() != at::IntArrayRef(graph_.inputs[i].shape))
            throw UserError(fmt::format("the input '{}' is {}, the network expects {}", graph_.inputs[i].name, to_string(inputs[i].sizes().vec()),
                                        to_string(graph_.inputs[i].shape)));
    auto value = [&](std::ptrdiff_t source) -> const at::Tensor& {
        return source < 0 ? inputs[static_cast<std::size_t>(-1 - source)] : values[static_cast<std::size_t>(source)];
    };
    for (std::size_t i = first; i < graph_.nodes.size(); ++i) {
        std::vector<at::Tensor> in;
        for (std::ptrdiff_t source : sources_[i]) in.push_back(value(source));
        at::Tensor out = apply(i, in, pass.parameters, pass.norm, pass.statistics);
        if (pass.watch) pass.watch(graph_.nodes[i], in, out);
        values[i] = std::move(out);
        for (std::ptrdiff_t source : sources_[i])
            if (source >= 0 && last_use_[static_cast<std::size_t>(source)] == i) values[static_cast<std::size_t>(source)].reset();
    }
    std::vector<at::Tensor> outputs;
    for (std::ptrdiff_t source : results_) outputs.push_back(value(source));
    return outputs;
}

at::Tensor Executor::apply(std::size_t i, const std::vector<at::Tensor>& in, const TensorMap& p, NormMode norm, Statistics statistics) const {
    const Node& node = graph_.nodes[i];
    const std::string& op = node.op;
    if (op == "conv2d" || op == "linear") {
        at::Tensor bias = optional_parameter(node, p, ".bias");
        const at::Tensor& weight = parameter(p, node.name + ".weight");
        if (restricted_[i]) return restricted_[i]->run(in, weight, bias);
        if (op == "linear") return at::linear(in[0], weight, bias);
        return at::conv2d(in[0], weight, bias, node.integers("stride"), node.integers("padding"), node.integers("dilation"), node.integer("groups"));
    }
    if (op == "matmul") return restricted_[i] ? restricted_[i]->run(in, {}, {}) : at::matmul(in[0], in[1]);
    if (op == "batch_norm") {
        if (norm == NormMode::none) return in[0];
        bool training = norm == NormMode::batch;
        at::Tensor mean, variance;
        if (!training)
            mean = parameter(p, node.name + ".running_mean"), variance = parameter(p, node.name + ".running_var");
        else if (statistics.running)
            mean = statistics.running->at(node.name + ".running_mean"), variance = statistics.running->at(node.name + ".running_var");
        return at::batch_norm(in[0], parameter(p, node.name + ".weight"), parameter(p, node.name + ".bias"), mean, variance, training, statistics.momentum,
                              node.real("eps"), true);
    }
    if (op == "layer_norm")
        return at::layer_norm(in[0], {in[0].size(-1)}, parameter(p, node.name + ".weight"), parameter(p, node.name + ".bias"), node.real("eps"));
    if (op == "relu") return at::relu(in[0]);
    if (op == "relu6") return at::clamp(in[0], 0, 6);
    if (op == "silu") return at::silu(in[0]);
    if (op == "gelu") return at::gelu(in[0]);
    if (op == "sigmoid") return at::sigmoid(in[0]);
    if (op == "hard_swish") return at::hardswish(in[0]);
    if (op == "softmax") return at::softmax(in[0], node.integer("axis"));
    if (op == "add") return in[0] + in[1];
    if (op == "mul") return in[0] * in[1];
    if (op == "scale") return in[0] * node.real("value");
    if (op == "concat") return at::cat(in, node.integer("axis"));
    if ((op == "max_pool" || op == "avg_pool") && node.integers("padding") != node.integers("padding_end")) return uneven_pool(node, in[0]);
    if (op == "max_pool") return at::max_pool2d(in[0], node.integers("kernel"), node.integers("stride"), node.integers("padding"));
    if (op == "avg_pool")
        return at::avg_pool2d(in[0], node.integers("kernel"), node.integers("stride"), node.integers("padding"), false, node.flag("count_padding"));
    if (op == "global_avg_pool") return in[0].mean(at::IntArrayRef{2, 3}, true);
    if (op == "flatten" || op == "reshape") return in[0].reshape(node.shape);
    if (op == "transpose") return in[0].permute(node.integers("order"));
    if (op == "parameter") return parameter(p, node.name);
    if (op == "identity") return in[0];
    if (op == "slice") return sliced(node, in[0]);
    if (op == "pad") return padded(node, in[0]);
    if (op == "expand") return in[0].expand(node.shape);
    if (op == "reduce_mean") return in[0].mean(node.integers("axes"), node.flag("keepdims"));
    if (op == "reduce_sum") return in[0].sum(node.integers("axes"), node.flag("keepdims"));
    if (op == "reduce_max") return at::amax(in[0], node.integers("axes"), node.flag("keepdims"));
    if (op == "onnx") return opaque(node, in);
    if (const ElementFunction* f = find_function(op)) return element_function(*f, node, in);
    if (find_loop_operator(op)) return run_loop_operator(node, in);
    throw InternalFault(fmt::format("no LibTorch operation for '{}'", op));
}

at::Tensor to_torch(const Tensor& tensor) {
    at::Tensor out = at::empty(tensor.shape, at::kFloat);
    std::memcpy(out.data_ptr<float>(), tensor.values.data(), tensor.values.size() * sizeof(float));
    return out;
}

Tensor from_torch(const at::Tensor& tensor) {
    at::Tensor plain = tensor.detach().to(at::kCPU, at::kFloat).contiguous();
    const float* data = plain.data_ptr<float>();
    return {plain.sizes().vec(), std::vector<float>(data, data + plain.numel())};
}

}  // namespace loopegg
