#include "fisher/libtorch/scoring.hpp"

#include <cmath>
#include <unordered_set>

#include <torch/csrc/autograd/autograd.h>

#include "base/error.hpp"
#include "fisher/libtorch/loops.hpp"
#include "graph/operators.hpp"

namespace loopegg {
namespace {

using Tensors = std::vector<at::Tensor>;

bool rectifies(const Node& node) {
    return node.op == "relu" || node.op == "relu6" || node.op == "silu" || node.op == "gelu" || node.op == "hard_swish" || node.op == "leaky_relu";
}

// The weights of compute sites, as leaves of their own.
struct Leaves {
    TensorMap parameters;
    Tensors weights;
    std::vector<std::string> names;
    Leaves(const Graph& graph, const TensorMap& from, const std::function<at::Tensor(const at::Tensor&)>& change) : parameters(from) {
        for (const Node& node : graph.nodes)
            if (node.op == "conv2d" || node.op == "linear") {
                at::Tensor& w = parameters.at(node.name + ".weight");
                w = change(w.detach()).requires_grad_(true);
                weights.push_back(w), names.push_back(node.name);
            }
    }
};

// SynFlow: R = sum of the outputs of the network without norms, with the absolute weights, on an image of ones.
double synflow(const Graph& graph, const TensorMap& parameters, const at::Tensor& images) {
    Executor executor(graph, 1);
    TensorMap absolute;
    for (const auto& [name, tensor] : parameters) absolute[name] = tensor.detach().to(at::kDouble).abs();
    Leaves leaves(graph, absolute, [](const at::Tensor& w) { return w; });
    at::Tensor ones = at::ones_like(images.narrow(0, 0, 1), at::kDouble);
    at::Tensor total = executor.run({ones}, leaves.parameters, NormMode::none)[0].sum();
    Tensors grads = torch::autograd::grad({total}, leaves.weights, {}, false, false, true);
    double score = 0;
    for (std::size_t i = 0; i < grads.size(); ++i)
        if (grads[i].defined()) score += (leaves.weights[i] * grads[i]).abs().sum().item<double>();
    return score > 0 ? std::log(score) : score;
}

bool plain_floats(const at::Tensor& t) { return t.is_cpu() && t.scalar_type() == at::kFloat && t.is_contiguous(); }
std::span<const float> floats(const at::Tensor& t) { return {t.const_data_ptr<float>(), static_cast<std::size_t>(t.numel())}; }

// The kernel from the number of units of each code: the same whole numbers, in one pass over the units.
CodeKernel kernel_of(const CodeCounts& counts, std::int64_t images) {
    at::Tensor same = at::zeros({images, images}, at::kDouble);
    double* k = same.mutable_data_ptr<double>();
    double units = 0;
    for (std::size_t code = 0; code < counts.units.size(); ++code) {
        const double count = static_cast<double>(counts.units[code]);
        if (count == 0) continue;
        units += count;
        for (std::int64_t i = 0; i < images; ++i)
            for (std::int64_t j = 0; j < images; ++j) k[i * images + j] += (code >> i & 1) == (code >> j & 1) ? count : 0;
    }
    return {same, units, static_cast<double>(counts.idle)};
}

}  // namespace

// With 0/1 codes c: c c' + (1-c)(1-c)'.
CodeKernel code_kernel(const at::Tensor& before_relu) {
    c10::NoGradGuard none;
    if (before_relu.size(0) <= most_coded_images && plain_floats(before_relu))
        return kernel_of(count_codes(floats(before_relu), before_relu.size(0)), before_relu.size(0));
    at::Tensor x = before_relu.detach().flatten(1), code = (x > 0).to(at::kFloat);
    at::Tensor on = code.sum(1, false, at::kDouble), both = at::matmul(code, code.t()).to(at::kDouble);
    at::Tensor same = 2 * both + static_cast<double>(code.size(1)) - on.unsqueeze(0) - on.unsqueeze(1);
    return {same, static_cast<double>(x.size(1)), (x == x.narrow(0, 0, 1)).all(0).sum().item<double>()};
}

void CodeKernel::add(const CodeKernel& other) {
    kernel = kernel.defined() ? kernel + other.kernel : other.kernel;
    units += other.units, idle += other.idle;
}

double CodeKernel::log_determinant() const { return kernel.defined() ? std::get<1>(at::linalg_slogdet(kernel.cpu())).item<double>() : 0.0; }

double CodeKernel::spread() const {
    if (!kernel.defined() || kernel.size(0) < 2 || units <= idle) return 0.0;
    return std::get<1>(at::linalg_slogdet((kernel.cpu() - idle) / (units - idle))).item<double>() / static_cast<double>(kernel.size(0));
}

std::vector<std::string> scored_layers(const Graph& graph) {
    std::vector<std::string> convolutions, all;
    for (const Node& node : graph.nodes) {
        if (!is_site(node)) continue;
        all.push_back(node.name);
        if (node.op == "conv2d") convolutions.push_back(node.name);
    }
    return convolutions.empty() ? all : convolutions;
}

namespace {

// Watches a forward pass: which activations are scored, and the codes of its rectifiers.
struct Watcher {
    std::unordered_set<std::string> scored;
    bool fisher, with_codes;
    Tensors activations;
    std::vector<std::string> names;
    CodeKernel codes;
    std::vector<std::pair<std::string, double>> spreads;   // of each rectifier

    Watcher(const std::vector<std::string>& layers, bool fisher, bool with_codes)
        : scored(layers.begin(), layers.end()), fisher(fisher), with_codes(with_codes) {}

    // A layer whose channels come back through a node of their own is scored where its readers see it.
    std::string layer_of(const Node& node) const {
        std::string_view restored = ".restore";
        bool brings_back = node.name.ends_with(restored) && !scored.contains(node.name);
        return brings_back ? node.name.substr(0, node.name.size() - restored.size()) : node.name;
    }
    void begin_after(const KeptForward& known, std::size_t shared) {
        for (const KeptForward::Layer& l : known.layers)
            if (l.node < shared) activations.push_back(l.activation), names.push_back(l.name);
        for (const KeptForward::Codes& c : known.codes)
            if (c.node < shared) codes = c.sum, spreads.emplace_back(c.name, c.own);
    }
    void operator()(const Node& node, const Tensors& in, at::Tensor& out) {
        if (with_codes && rectifies(node)) {
            CodeKernel own = code_kernel(in[0]);
            codes.add(own), spreads.emplace_back(node.name, own.spread());
        }
        if (!fisher) return;
        std::string layer = layer_of(node);
        if (!scored.contains(layer)) return;
        if (!out.requires_grad()) out = out.detach().requires_grad_(true);   // the first layers become the leaves
        if (!names.empty() && names.back() == layer) activations.back() = out;
        else activations.push_back(out), names.push_back(layer);
    }
};

}  // namespace

std::int64_t KeptForward::bytes() const {
    std::int64_t sum = 0;
    for (const at::Tensor& t : values)
        if (t.defined()) sum += static_cast<std::int64_t>(t.nbytes());
    return sum;
}

KeptForward keep_forward(const Executor& executor, const TensorMap& parameters, const at::Tensor& images, const std::vector<std::string>& layers) {
    c10::AutoGradMode mode(true);
    KeptForward kept;
    Watcher watcher(layers, true, true);
    executor.run({images}, parameters, NormMode::batch, [&](const Node& node, const Tensors& in, at::Tensor& out) {
        watcher(node, in, out);
        std::size_t place = kept.values.size();
        if (watcher.names.size() > kept.layers.size()) kept.layers.push_back({watcher.names.back(), place, out});
        if (rectifies(node)) kept.codes.push_back({node.name, place, watcher.codes, watcher.spreads.back().second});
        kept.values.push_back(out);
    });
    return kept;
}

RawScores score_pass(const Executor& executor, const TensorMap& parameters, const at::Tensor& images, const at::Tensor& labels,
                     const std::vector<std::string>& layers, const Wanted& wanted, const KeptForward* known, std::size_t shared) {
    RawScores scores;
    if (wanted.synflow) scores.synflow = synflow(executor.graph(), parameters, images);
    if (!wanted.fisher && !wanted.codes && !wanted.weights) return scores;
    scores.images = images.size(0);
    const Graph& graph = executor.graph();
    bool backward = wanted.fisher || wanted.weights;
    c10::AutoGradMode mode(backward);
    std::optional<Leaves> leaves;
    if (wanted.weights) leaves.emplace(graph, parameters, [](const at::Tensor& w) { return w.alias(); });
    Watcher watcher(layers, wanted.fisher, wanted.codes);
    auto watch = [&](const Node& node, const Tensors& in, at::Tensor& out) { watcher(node, in, out); };
    const bool shares = known && shared > 0 && !leaves;
    at::Tensor logits;
    if (shares) {
        watcher.begin_after(*known, shared);
        Tensors first(known->values.begin(), known->values.begin() + static_cast<std::ptrdiff_t>(shared));
        logits = executor.run_after(first, {images}, parameters, NormMode::batch, watch)[0];
    } else
        logits = executor.run({images}, leaves ? leaves->parameters : parameters, NormMode::batch, watch)[0];
    if (logits.dim() != 2) logits = logits.flatten(1);
    at::Tensor loss = at::cross_entropy_loss(logits, labels);
    scores.loss = loss.item<double>();
    if (wanted.codes) scores.naswot = watcher.codes.log_determinant(), scores.code_spread = watcher.codes.spread(), scores.codes = watcher.spreads;
    if (!backward) return scores;

    const Tensors& activations = watcher.activations;
    Tensors targets = activations;
    if (leaves) targets.insert(targets.end(), leaves->weights.begin(), leaves->weights.end());
    Tensors grads = torch::autograd::grad({loss}, targets, {}, shares, false, true);
    c10::NoGradGuard none;
    double scale = 1.0 / (2.0 * static_cast<double>(images.size(0)));
    for (std::size_t i = 0; i < activations.size(); ++i) {
        double score = 0;
        if (grads[i].defined()) {
            at::Tensor activation = activations[i].detach();
            if (activation.dim() == 4 && plain_floats(activation) && plain_floats(grads[i])) {
                scores.fisher.emplace_back(watcher.names[i],
                                           scale * sum_of_squared_products(floats(activation), floats(grads[i]), activation.size(2) * activation.size(3)));
                continue;
            }
            at::Tensor product = activation * grads[i];
            if (product.dim() == 4) product = product.sum(at::IntArrayRef{2, 3}, false, at::kDouble);               // [n, c]
            else if (product.dim() == 3) product = product.sum(at::IntArrayRef{1}, false, at::kDouble);             // tokens stand for places
            score = product.to(at::kDouble).square().sum().item<double>() * scale;
        }
        scores.fisher.emplace_back(watcher.names[i], score);
    }
    if (leaves)
        for (std::size_t i = 0; i < leaves->weights.size(); ++i) {
            const at::Tensor& g = grads[activations.size() + i];
            scores.gradients.emplace_back(leaves->names[i], g.defined() ? g.to(at::kDouble).norm().item<double>() : 0.0);
            if (!g.defined()) continue;
            scores.snip += (leaves->weights[i].detach() * g).abs().sum(at::kDouble).item<double>();
            scores.grad_norm += g.to(at::kDouble).norm().item<double>();
        }
    return scores;
}

}  // namespace loopegg
