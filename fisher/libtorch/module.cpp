// The one entry of the module: loopegg_torch_runtime() gives the LibTorch half of fisher/.
#include <malloc.h>

#include <algorithm>
#include <functional>
#include <thread>
#include <unordered_map>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/version.h>

#include "base/error.hpp"
#include "fisher/engine.hpp"
#include "fisher/libtorch/executor.hpp"
#include "fisher/libtorch/parameters.hpp"
#include "fisher/libtorch/scoring.hpp"
#include "fisher/libtorch/shared_weights.hpp"
#include "fisher/libtorch/training.hpp"
#include "graph/load.hpp"
#include "graph/operators.hpp"
#include "graph/streams.hpp"

namespace loopegg {
namespace {

// The Fisher Potential of every channel of a trained network, from one pass over images.

constexpr std::int64_t max_bytes_at_once = 512ll << 20;  // of activations
constexpr std::int64_t max_images_at_once = 32;
// A trained network answers most images so surely that their gradients vanish. The images that hold this share of all squared errors are scored; the others
// are shown without a backward pass.
constexpr double scored_share = 0.9;

// Where the channels of a site are switched off: at the batch norm that alone reads the site, if there is one, otherwise at the site itself.
std::unordered_map<std::string, std::string> site_of_value(const Graph& graph, const Streams& streams) {
    std::unordered_map<std::string, std::vector<const Node*>> readers;
    for (const Node& node : graph.nodes)
        for (const std::string& input : node.inputs) readers[input].push_back(&node);
    std::unordered_map<std::string, std::string> sites;
    for (const Node& node : graph.nodes) {
        if (!is_site(node) || !streams.written_by(node.name)) continue;
        const std::vector<const Node*>& after = readers[node.name];
        const bool normed = after.size() == 1 && after[0]->op == "batch_norm";
        sites[normed ? after[0]->name : node.name] = node.name;
    }
    return sites;
}

std::int64_t images_that_fit(const Graph& graph, std::int64_t images) {
    const std::int64_t own = graph.inputs.at(0).shape.at(0);
    std::int64_t bytes = 0;
    for (const Node& node : graph.nodes) bytes += element_count(node.shape) * 4 / std::max<std::int64_t>(1, own);
    return std::clamp(max_bytes_at_once / std::max<std::int64_t>(1, bytes), std::int64_t{1}, std::min(images, max_images_at_once));
}

class ChannelSums {
public:
    ChannelSums(const Graph& graph) : streams_(streams_of(graph)), sites_(site_of_value(graph, streams_)) {}

    void show(const Executor& executor, const TensorMap& parameters, const LabelledImages& data) {
        std::vector<std::pair<std::string, at::Tensor>> seen;
        const auto watch = [&](const Node& node, const std::vector<at::Tensor>&, at::Tensor& out) {
            const auto site = sites_.find(node.name);
            if (site == sites_.end()) return;
            if (!out.requires_grad()) out = out.detach().requires_grad_(true);  // the first values become the leaves
            seen.emplace_back(site->second, out);
        };
        const std::int64_t images = data.labels.size(0);
        at::Tensor answers = executor.run({data.images}, parameters, NormMode::running, watch)[0].reshape({images, -1});
        at::Tensor loss = at::cross_entropy_loss(answers, data.labels, {}, at::Reduction::Sum);
        if (!loss.requires_grad()) refuse_without_derivative(executor.graph());
        std::vector<at::Tensor> values;
        for (const auto& [site, value] : seen) values.push_back(value);
        const std::vector<at::Tensor> gradients = torch::autograd::grad({loss}, values, {}, false, false, true);
        c10::NoGradGuard none;
        for (std::size_t i = 0; i < seen.size(); ++i) add(seen[i].first, seen[i].second.detach(), gradients[i], images);
    }

    SiteScores over(std::int64_t images) {
        for (auto& [site, sums] : by_site_)
            for (double& v : sums) v /= 2.0 * static_cast<double>(images);
        return std::move(by_site_);
    }

private:
    // The square of what each channel adds to the loss, summed over images. A value whose first dimension is not one of images is left out.
    void add(const std::string& site, const at::Tensor& value, const at::Tensor& gradient, std::int64_t images) {
        const std::int64_t axis = static_cast<std::int64_t>(streams_.of.at(site).axis);
        if (!gradient.defined() || axis == 0 || value.size(0) != images) return;
        at::Tensor product = (value * gradient).movedim(axis, 1).reshape({images, value.size(axis), -1}).sum(2, false, at::kDouble);
        at::Tensor squares = product.square().sum(0).cpu().contiguous();
        std::vector<double>& sums = by_site_[site];
        sums.resize(static_cast<std::size_t>(squares.numel()), 0.0);
        for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += squares.const_data_ptr<double>()[c];
    }

    Streams streams_;
    std::unordered_map<std::string, std::string> sites_;
    SiteScores by_site_;
};

// The squared distance of each image's probabilities from its label, and how many images are answered correctly.
struct Errors {
    at::Tensor squared;
    std::int64_t right = 0;
};

// Calls `work` with all images, `each` at a time.
void in_turns(const Graph& graph, const LabelledImages& data, std::int64_t each, const std::function<void(const Executor&, const LabelledImages&)>& work) {
    const std::int64_t images = data.labels.size(0);
    const Executor executor(graph, each);
    for (std::int64_t i = 0; i + each <= images; i += each) work(executor, {data.images.narrow(0, i, each), data.labels.narrow(0, i, each)});
    if (const std::int64_t rest = images % each)
        work(Executor(graph, rest), {data.images.narrow(0, images - rest, rest), data.labels.narrow(0, images - rest, rest)});
}

Errors errors_of(const Graph& graph, const TensorMap& parameters, const LabelledImages& data, std::int64_t each) {
    c10::NoGradGuard none;
    Errors errors;
    std::vector<at::Tensor> squared;
    in_turns(graph, data, each, [&](const Executor& executor, const LabelledImages& some) {
        at::Tensor answers = executor.run({some.images}, parameters, NormMode::running)[0].reshape({some.labels.size(0), -1});
        errors.right += (answers.argmax(1) == some.labels).sum().item<std::int64_t>();
        at::Tensor off = at::softmax(answers.to(at::kDouble), 1);
        off.scatter_add_(1, some.labels.unsqueeze(1), at::full({some.labels.size(0), 1}, -1.0, off.options()));
        squared.push_back(off.square().sum(1));
    });
    errors.squared = at::cat(squared);
    return errors;
}

// The images with the largest errors, as many as hold `scored_share` of all, and a multiple of `each` where a network takes no other number.
at::Tensor telling_images(const at::Tensor& squared, std::int64_t multiple) {
    auto [sorted, order] = squared.sort(0, true);
    const double enough = scored_share * sorted.sum().item<double>();
    std::int64_t count = (sorted.cumsum(0) < enough).sum().item<std::int64_t>() + 1;
    count = std::min((count + multiple - 1) / multiple * multiple, squared.size(0));
    return order.narrow(0, 0, count);
}

// Batch norms use their stored statistics, so that every image is scored by itself, and the answer does not depend on how many images are shown at once.
ChannelFisher channel_fisher_of(const Graph& graph, const TensorMap& parameters, const LabelledImages& data) {
    const std::int64_t images = data.labels.size(0), at_once = images_at_once(graph, images);
    const bool fixed = at_once < images;  // a batch that is written into the network stays
    const std::int64_t each = fixed ? at_once : images_that_fit(graph, images);
    const Errors errors = errors_of(graph, parameters, data, each);
    const at::Tensor telling = telling_images(errors.squared, fixed ? each : 1);
    c10::AutoGradMode mode(true);
    ChannelSums sums(graph);
    in_turns(graph, {data.images.index_select(0, telling), data.labels.index_select(0, telling)}, std::min(each, telling.size(0)),
             [&](const Executor& executor, const LabelledImages& some) { sums.show(executor, parameters, some); });
    return {sums.over(images), images, telling.size(0), errors.right};
}

at::Device device() { return at::globalContext().hasCUDA() ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU); }

void use_threads(int threads) { at::set_num_threads(threads > 0 ? threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()))); }

at::Tensor images_of(const Batch& batch, at::ScalarType type) {
    require(!batch.shape.empty() && element_count(batch.shape) == static_cast<std::int64_t>(batch.images.size()), "a batch's images fill its shape");
    return to_torch({batch.shape, batch.images}).to(device(), type);
}

at::Tensor labels_of(const Batch& batch) {
    require(batch.labels.size() == static_cast<std::size_t>(batch.shape[0]), "a label for each image");
    return at::tensor(at::ArrayRef<std::int64_t>(batch.labels), at::kLong).to(device());
}

LabelledImages tensors_of(const Batch& batch, at::ScalarType type) { return {images_of(batch, type), labels_of(batch)}; }

TensorMap to_device(TensorMap map, at::ScalarType type) {
    for (auto& [name, tensor] : map) tensor = tensor.to(device(), type);
    return map;
}

TensorMap tensors_of(const Weights& weights) {
    TensorMap map;
    for (const auto& [name, tensor] : weights) map[name] = to_torch(tensor);
    return map;
}

Weights weights_of(const TensorMap& map) {
    Weights weights;
    for (const auto& [name, tensor] : map) weights[name] = from_torch(tensor);
    return weights;
}

class Runtime final : public TorchRuntime {
public:
    std::string describe() const override {
        return fmt::format("LibTorch {}, {}, {} threads", TORCH_VERSION, device().is_cuda() ? "CUDA" : "CPU", at::get_num_threads());
    }

    std::vector<Tensor> forward(const Graph& graph, const Weights& weights, std::span<const Tensor> inputs, NormMode norm) override {
        c10::NoGradGuard none;
        Executor executor(graph, graph.inputs.at(0).shape.at(0));
        std::vector<at::Tensor> in;
        for (const Tensor& t : inputs) in.push_back(to_torch(t).to(device()));
        std::vector<Tensor> out;
        for (const at::Tensor& t : executor.run(in, to_device(tensors_of(weights), at::kFloat), norm)) out.push_back(from_torch(t));
        return out;
    }

    RawScores score_weights(const Graph& graph, const Weights& weights, const Batch& batch, const MeasureSet& wanted, bool double_precision) override {
        at::ScalarType type = double_precision ? at::kDouble : at::kFloat;
        Executor executor(graph, images_at_once(graph, batch.shape.at(0)));
        return score_pass(executor, to_device(tensors_of(weights), type), tensors_of(batch, type), scored_layers(graph), wanted);
    }

    ChannelFisher channel_fisher(const Graph& graph, const Weights& weights, const Batch& batch, int threads) override {
        use_threads(threads);
        return channel_fisher_of(graph, to_device(tensors_of(weights), at::kFloat), tensors_of(batch, at::kFloat));
    }

    std::unique_ptr<Scorer> scorer(const Graph& original, const Weights* trained, std::vector<Batch> batches, const ScorerOptions& options) override {
        at::ScalarType type = options.double_precision ? at::kDouble : at::kFloat;
        require(!batches.empty(), "a scorer needs a batch");
        TensorBatches data;
        for (const Batch& batch : batches) data.images.push_back(images_of(batch, type)), data.labels.push_back(labels_of(batch));
        return shared_weight_scorer(original, trained ? to_device(tensors_of(*trained), type) : TensorMap{}, std::move(data), options);
    }

    double accuracy(const Graph& graph, const Weights& weights, const Batch& data, int threads) override {
        use_threads(threads);
        return accuracy_of(graph, to_device(tensors_of(weights), at::kFloat), images_of(data, at::kFloat), labels_of(data));
    }

    void train(const Graph& graph, Weights& weights, const Splits& data, const Model* teacher, const TrainOptions& options,
               const std::function<bool(const TrainReport&)>& on_epoch) override {
        use_threads(options.threads);
        TensorMap parameters = to_device(tensors_of(weights), at::kFloat);
        std::optional<Teacher> knowing;
        if (teacher) knowing.emplace(Teacher{teacher->graph, to_device(tensors_of(teacher->weights), at::kFloat)});
        train_parameters(graph, parameters, {tensors_of(data.train, at::kFloat), tensors_of(data.test, at::kFloat)}, knowing, options, on_epoch);
        weights = weights_of(parameters);
    }
};

}  // namespace
}  // namespace loopegg

extern "C" loopegg::TorchRuntime* loopegg_torch_runtime() {
    // Activations of a few megabytes come and go with every pass. To hand them back to the system each time costs more than to use them.
    mallopt(M_MMAP_THRESHOLD, 256 << 20);
    mallopt(M_TRIM_THRESHOLD, 512 << 20);
    mallopt(M_ARENA_MAX, 1);  // an arena of a thread's own gives back what is above 64 MiB, whatever the other settings say
    static loopegg::Runtime room;
    return &room;
}
