#include "fisher/libtorch/scoring.hpp"

#include <cmath>
#include <unordered_set>

#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include "base/error.hpp"
#include "fisher/libtorch/loops.hpp"
#include "graph/opaque.hpp"
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

bool takes_batch(const Graph& graph, std::int64_t batch) {
    try {
        with_batch(graph, batch);
        return true;
    } catch (const UserError&) {
        return false;
    }
}

// SynFlow: R = sum of the outputs of the network without norms, with the absolute weights, on an image of ones.
double synflow(const Graph& graph, const TensorMap& parameters, const at::Tensor& images) {
    const std::int64_t each = takes_batch(graph, 1) ? 1 : graph.inputs[0].shape[0];
    Executor executor(graph, each);
    TensorMap absolute;
    for (const auto& [name, tensor] : parameters) absolute[name] = tensor.detach().to(at::kDouble).abs();
    Leaves leaves(graph, absolute, [](const at::Tensor& w) { return w; });
    at::Tensor ones = at::ones_like(images.narrow(0, 0, each), at::kDouble);
    at::Tensor total = executor.run({ones}, leaves.parameters, NormMode::none)[0].sum() / static_cast<double>(each);
    Tensors grads = torch::autograd::grad({total}, leaves.weights, {}, false, false, true);
    double score = 0;
    for (std::size_t i = 0; i < grads.size(); ++i)
        if (grads[i].defined()) score += (leaves.weights[i] * grads[i]).abs().sum().item<double>();
    return score > 0 ? std::log(score) : score;
}

bool plain_floats(const at::Tensor& t) { return t.is_cpu() && t.scalar_type() == at::kFloat && t.is_contiguous(); }
std::span<const float> floats(const at::Tensor& t) { return {t.const_data_ptr<float>(), static_cast<std::size_t>(t.numel())}; }

// The kernel from the number of units of each code: the same whole numbers as code_kernel gives, in one pass over the units.
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

// The kernel is c c' + (1-c)(1-c)', with 0/1 codes c.
CodeKernel code_kernel(const at::Tensor& before_relu) {
    c10::NoGradGuard none;
    if (before_relu.size(0) <= max_coded_images && plain_floats(before_relu))
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

// Watches a forward pass: notes the activations that are scored, and the codes of its rectifiers.
struct Watcher {
    std::unordered_set<std::string> scored;
    bool fisher, with_codes;
    Tensors activations;
    std::vector<std::string> names;
    std::int64_t images;  // how many images are shown at once
    CodeKernel codes;
    std::vector<std::pair<std::string, double>> spreads;                   // of each rectifier
    std::vector<std::pair<std::string, at::Tensor>>* rectified = nullptr;  // the input of each rectifier, where codes wait for images that are still to come

    Watcher(const std::vector<std::string>& layers, bool fisher, bool with_codes, std::int64_t images)
        : scored(layers.begin(), layers.end()), fisher(fisher), with_codes(with_codes), images(images) {}

    // A layer whose channels another node brings back is scored at that node, because the readers of the layer read that node.
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
    void add_codes(const std::string& name, const at::Tensor& before_relu) {
        CodeKernel own = code_kernel(before_relu);
        codes.add(own), spreads.emplace_back(name, own.spread());
    }
    void operator()(const Node& node, const Tensors& in, at::Tensor& out) {
        if (with_codes && rectifies(node) && in[0].dim() > 0 && in[0].size(0) % images == 0) {  // other values do not depend on the images
            const at::Tensor rows = in[0].size(0) == images ? in[0] : in[0].reshape({images, -1});
            if (rectified)
                rectified->emplace_back(node.name, rows.detach().flatten(1));
            else
                add_codes(node.name, rows);
        }
        if (!fisher) return;
        std::string layer = layer_of(node);
        if (!scored.contains(layer)) return;
        if (!out.requires_grad()) out = out.detach().requires_grad_(true);  // the first layers become the leaves
        if (!names.empty() && names.back() == layer)
            activations.back() = out;
        else
            activations.push_back(out), names.push_back(layer);
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
    Watcher watcher(layers, true, true, images.size(0));
    executor.run({images}, parameters, NormMode::batch, [&](const Node& node, const Tensors& in, at::Tensor& out) {
        watcher(node, in, out);
        std::size_t place = kept.values.size();
        if (watcher.names.size() > kept.layers.size()) kept.layers.push_back({watcher.names.back(), place, out});
        if (watcher.spreads.size() > kept.codes.size()) kept.codes.push_back({node.name, place, watcher.codes, watcher.spreads.back().second});
        kept.values.push_back(out);
    });
    return kept;
}

void refuse_without_derivative(const Graph& graph) {
    std::string between;
    for (const auto& [op, count] : opaque_operators(graph)) between += (between.empty() ? "" : ", ") + op;
    throw UserError(Diagnostic{fmt::format("the guard cannot score '{}': no derivative reaches its layers from the first output{}", graph.name,
                                           between.empty() ? "" : " through opaque operators (" + between + ")"),
                               {},
                               "'--rules exact' makes a network faster without a guard"});
}

namespace {

// The sum over images and channels of the square of what a channel adds to the loss.
double fisher_of(const at::Tensor& activation, const at::Tensor& gradient) {
    if (activation.dim() == 4 && plain_floats(activation) && plain_floats(gradient))
        return sum_of_squared_products(floats(activation), floats(gradient), activation.size(2) * activation.size(3));
    at::Tensor product = activation * gradient;
    if (product.dim() == 4)
        product = product.sum(at::IntArrayRef{2, 3}, false, at::kDouble);  // [n, c]
    else if (product.dim() == 3)
        product = product.sum(at::IntArrayRef{1}, false, at::kDouble);  // tokens represent places
    return product.to(at::kDouble).square().sum().item<double>();
}

// The sums of one batch. A network that takes fewer images at once than the batch holds is shown them in several turns. Every measure here is a sum over
// images, except codes, which wait until all images were shown.
class Pass {
public:
    Pass(const Executor& executor, const TensorMap& parameters, const std::vector<std::string>& layers, const MeasureSet& wanted, std::int64_t images)
        : executor_(executor), parameters_(parameters), layers_(layers), wanted_(wanted), images_(images), each_(executor.graph().inputs[0].shape[0]) {
        require(images % each_ == 0, "a batch is a whole number of turns");
        if (wanted.weights) leaves_.emplace(executor.graph(), parameters, [](const at::Tensor& w) { return w.alias(); });
        scores_.images = images;
    }

    void show(const at::Tensor& images, const at::Tensor& labels, SharedForward shared) {
        Watcher watcher(layers_, wanted_.fisher, wanted_.codes, each_);
        std::vector<std::pair<std::string, at::Tensor>> rectified;
        if (each_ < images_) watcher.rectified = &rectified;
        auto watch = [&](const Node& node, const Tensors& in, at::Tensor& out) { watcher(node, in, out); };
        const bool shares = shared.pass && shared.nodes > 0 && !leaves_ && each_ == images_;
        at::Tensor logits;
        if (shares) {
            watcher.begin_after(*shared.pass, shared.nodes);
            const Tensors& known = shared.pass->values;
            Tensors first(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(shared.nodes));
            logits = executor_.run_after(first, {images}, parameters_, NormMode::batch, watch)[0];
        } else
            logits = executor_.run({images}, leaves_ ? leaves_->parameters : parameters_, NormMode::batch, watch)[0];
        at::Tensor loss = at::cross_entropy_loss(logits.reshape({each_, -1}), labels);
        if (each_ < images_) loss = loss * (static_cast<double>(each_) / static_cast<double>(images_));
        scores_.loss += loss.item<double>();
        if (wanted_.codes) take_codes(watcher, rectified);
        if (wanted_.fisher || wanted_.weights) take_gradients(watcher, loss, shares);
    }

    RawScores finish() {
        for (auto& [name, parts] : before_relu_) codes_of_all(name, at::cat(parts));
        if (wanted_.codes) scores_.naswot = codes_.log_determinant(), scores_.code_spread = codes_.spread();
        if (leaves_)
            for (std::size_t i = 0; i < leaves_->weights.size(); ++i) {
                const at::Tensor& g = gradients_[i];
                scores_.gradients.emplace_back(leaves_->names[i], g.defined() ? g.to(at::kDouble).norm().item<double>() : 0.0);
                if (!g.defined()) continue;
                scores_.snip += (leaves_->weights[i].detach() * g).abs().sum(at::kDouble).item<double>();
                scores_.grad_norm += g.to(at::kDouble).norm().item<double>();
            }
        return std::move(scores_);
    }

private:
    void take_codes(const Watcher& watcher, const std::vector<std::pair<std::string, at::Tensor>>& rectified) {
        if (each_ == images_) codes_ = watcher.codes, scores_.codes = watcher.spreads;
        before_relu_.resize(rectified.size());
        for (std::size_t i = 0; i < rectified.size(); ++i) before_relu_[i].first = rectified[i].first, before_relu_[i].second.push_back(rectified[i].second);
    }

    void codes_of_all(const std::string& name, const at::Tensor& before_relu) {
        CodeKernel own = code_kernel(before_relu);
        codes_.add(own), scores_.codes.emplace_back(name, own.spread());
    }

    void take_gradients(const Watcher& watcher, const at::Tensor& loss, bool keep_graph) {
        if (!loss.requires_grad()) refuse_without_derivative(executor_.graph());
        Tensors targets = watcher.activations;
        if (leaves_) targets.insert(targets.end(), leaves_->weights.begin(), leaves_->weights.end());
        Tensors grads = torch::autograd::grad({loss}, targets, {}, keep_graph, false, true);
        c10::NoGradGuard none;
        const std::size_t count = watcher.activations.size();
        const double scale = 1.0 / (2.0 * static_cast<double>(images_));
        for (std::size_t i = 0; i < count; ++i) {
            if (i >= scores_.fisher.size()) scores_.fisher.emplace_back(watcher.names[i], 0.0);
            if (grads[i].defined()) scores_.fisher[i].second += scale * fisher_of(watcher.activations[i].detach(), grads[i]);
        }
        if (!leaves_) return;
        gradients_.resize(leaves_->weights.size());
        for (std::size_t i = 0; i < gradients_.size(); ++i)
            if (const at::Tensor& g = grads[count + i]; g.defined()) gradients_[i] = gradients_[i].defined() ? gradients_[i] + g : g;
    }

    const Executor& executor_;
    const TensorMap& parameters_;
    const std::vector<std::string>& layers_;
    const MeasureSet& wanted_;
    std::int64_t images_, each_;  // of the batch, and of one turn
    std::optional<Leaves> leaves_;
    Tensors gradients_;  // of the leaves
    CodeKernel codes_;
    std::vector<std::pair<std::string, Tensors>> before_relu_;  // by rectifier, a tensor for each turn
    RawScores scores_;
};

}  // namespace

RawScores score_pass(const Executor& executor, const TensorMap& parameters, const LabelledImages& batch, const std::vector<std::string>& layers,
                     const MeasureSet& wanted, SharedForward shared) {
    const auto& [images, labels] = batch;
    const double flow = wanted.synflow ? synflow(executor.graph(), parameters, images) : 0.0;
    RawScores scores;
    if (wanted.fisher || wanted.codes || wanted.weights) {
        c10::AutoGradMode mode(wanted.fisher || wanted.weights);
        const std::int64_t each = executor.graph().inputs[0].shape[0];
        Pass pass(executor, parameters, layers, wanted, images.size(0));
        for (std::int64_t i = 0; i < images.size(0); i += each) pass.show(images.narrow(0, i, each), labels.narrow(0, i, each), shared);
        scores = pass.finish();
    }
    scores.synflow = flow;
    return scores;
}

std::int64_t images_at_once(const Graph& graph, std::int64_t images) {
    if (takes_batch(graph, images)) return images;
    const std::int64_t own = graph.inputs[0].shape[0];
    if (images % own != 0)
        throw UserError(Diagnostic{fmt::format("'{}' takes {} images at a time, and {} are no whole number of turns", graph.name, own, images),
                                   {},
                                   fmt::format("give a number of images that {} divides", own)});
    return own;
}

}  // namespace loopegg
