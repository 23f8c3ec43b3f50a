// The module's one door: loopegg_torch_room() gives the LibTorch half of fisher/.
#include <malloc.h>

#include <algorithm>
#include <list>
#include <thread>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/version.h>

#include "base/error.hpp"
#include "fisher/engine.hpp"
#include "fisher/libtorch/executor.hpp"
#include "fisher/libtorch/parameters.hpp"
#include "fisher/libtorch/scoring.hpp"
#include "fisher/libtorch/training.hpp"

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

class SharedWeightScorer final : public Scorer {
public:
    SharedWeightScorer(const Graph& original, const Weights* trained, std::vector<Batch> batches, const ScorerOptions& options)
        : original_(original), options_(options), type_(options.double_precision ? at::kDouble : at::kFloat), layers_(scored_layers(original)) {
        require(!batches.empty(), "a scorer needs a batch");
        if (trained) trained_ = to_device(tensors_of(*trained), type_);
        for (const Batch& batch : batches) {
            images_.push_back(images_of(batch, type_));
            labels_.push_back(labels_of(batch));
        }
    }

    RawScores score(const Graph& graph, std::uint64_t seed, const Wanted& wanted) override {
        use_threads(options_.threads);
        std::size_t k = static_cast<std::size_t>(seed) % images_.size();
        const TensorMap& base = base_weights(seed);
        Executor executor(graph, images_[k].size(0));
        TensorMap own = &graph == &original_ ? base : carry_parameters(original_, base, graph, seed, !options_.carry_raw && trained_.empty());
        return score_pass(executor, own, images_[k], labels_[k], layers_, wanted);
    }

private:
    // A few seeds' weights are kept: variants come in batches that ask for the same ones.
    const TensorMap& base_weights(std::uint64_t seed) {
        if (!trained_.empty()) return trained_;
        for (auto it = drawn_.begin(); it != drawn_.end(); ++it)
            if (it->first == seed) {
                drawn_.splice(drawn_.begin(), drawn_, it);
                return drawn_.front().second;
            }
        if (drawn_.size() >= 4) drawn_.pop_back();
        drawn_.emplace_front(seed, to_device(draw_parameters(original_, seed), type_));
        return drawn_.front().second;
    }

    Graph original_;
    ScorerOptions options_;
    at::ScalarType type_;
    std::vector<std::string> layers_;
    TensorMap trained_;
    std::vector<at::Tensor> images_, labels_;
    std::list<std::pair<std::uint64_t, TensorMap>> drawn_;
};

class Room final : public TorchRoom {
public:
    std::string describe() const override { return fmt::format("LibTorch {}, {}, {} threads", TORCH_VERSION, device().is_cuda() ? "CUDA" : "CPU", at::get_num_threads()); }

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
        Executor executor(graph, batch.shape.at(0));
        return score_pass(executor, to_device(tensors_of(weights), type), images_of(batch, type), labels_of(batch), scored_layers(graph), wanted);
    }

    std::unique_ptr<Scorer> scorer(const Graph& original, const Weights* trained, std::vector<Batch> batches, const ScorerOptions& options) override {
        return std::make_unique<SharedWeightScorer>(original, trained, std::move(batches), options);
    }

    double accuracy(const Graph& graph, const Weights& weights, const Batch& data, int threads) override {
        use_threads(threads);
        return accuracy_of(graph, to_device(tensors_of(weights), at::kFloat), images_of(data, at::kFloat), labels_of(data));
    }

    void train(const Graph& graph, Weights& weights, const Batch& data, const Batch& test, const Graph* teacher, const Weights* teacher_weights, const TrainOptions& options,
               const std::function<bool(const TrainReport&)>& told) override {
        use_threads(options.threads);
        TensorMap parameters = to_device(tensors_of(weights), at::kFloat), knowing;
        if (teacher_weights) knowing = to_device(tensors_of(*teacher_weights), at::kFloat);
        train_parameters(graph, parameters, images_of(data, at::kFloat), labels_of(data), images_of(test, at::kFloat), labels_of(test), teacher, knowing, options, told);
        weights = weights_of(parameters);
    }
};

}  // namespace
}  // namespace loopegg

extern "C" loopegg::TorchRoom* loopegg_torch_room() {
    // Activations of a few megabytes come and go with every pass; handing them back to the system each time costs more than using them.
    mallopt(M_MMAP_THRESHOLD, 256 << 20);
    mallopt(M_TRIM_THRESHOLD, 512 << 20);
    static loopegg::Room room;
    return &room;
}
