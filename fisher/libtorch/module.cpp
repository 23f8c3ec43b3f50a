// The one entry of the module: loopegg_torch_room() gives the LibTorch half of fisher/.
#include <malloc.h>

#include <algorithm>
#include <thread>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/version.h>

#include "base/error.hpp"
#include "fisher/engine.hpp"
#include "fisher/libtorch/channel_fisher.hpp"
#include "fisher/libtorch/executor.hpp"
#include "fisher/libtorch/parameters.hpp"
#include "fisher/libtorch/scoring.hpp"
#include "fisher/libtorch/shared_weights.hpp"
#include "fisher/libtorch/training.hpp"
#include "graph/load.hpp"

namespace loopegg {
namespace {

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

class Room final : public TorchRoom {
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

    RawScores score_weights(const Graph& graph, const Weights& weights, const Batch& batch, const Wanted& wanted, bool double_precision) override {
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
               const std::function<bool(const TrainReport&)>& told) override {
        use_threads(options.threads);
        TensorMap parameters = to_device(tensors_of(weights), at::kFloat);
        std::optional<Teacher> knowing;
        if (teacher) knowing.emplace(Teacher{teacher->graph, to_device(tensors_of(teacher->weights), at::kFloat)});
        train_parameters(graph, parameters, {tensors_of(data.train, at::kFloat), tensors_of(data.test, at::kFloat)}, knowing, options, told);
        weights = weights_of(parameters);
    }
};

}  // namespace
}  // namespace loopegg

extern "C" loopegg::TorchRoom* loopegg_torch_room() {
    // Activations of a few megabytes come and go with every pass. To hand them back to the system each time costs more than to use them.
    mallopt(M_MMAP_THRESHOLD, 256 << 20);
    mallopt(M_TRIM_THRESHOLD, 512 << 20);
    mallopt(M_ARENA_MAX, 1);  // an arena of a thread's own gives back what lies above 64 MiB, whatever the other settings say
    static loopegg::Room room;
    return &room;
}
