#include "fisher/libtorch/shared_weights.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <list>
#include <mutex>
#include <numeric>
#include <thread>

#include <ATen/Parallel.h>

#include "base/error.hpp"
#include "base/team.hpp"
#include "fisher/libtorch/parameters.hpp"
#include "fisher/libtorch/scoring.hpp"

namespace loopegg {
namespace {

constexpr std::size_t max_seeds = 4;                  // seeds whose weights are kept, because variants come in batches that ask for the same seeds
constexpr std::int64_t max_kept_bytes = 512ll << 20;  // of forward passes
constexpr int max_workers = 16;

// Sets the number of torch's own threads for as long as the object lives.
class TorchThreads {
public:
    explicit TorchThreads(int count) : before_(at::get_num_threads()) { at::set_num_threads(count); }
    ~TorchThreads() { at::set_num_threads(before_); }
    TorchThreads(const TorchThreads&) = delete;
    TorchThreads& operator=(const TorchThreads&) = delete;

private:
    int before_;
};

// Calls `work` with 0 .. count-1, several at a time; the first exception is thrown again once all have ended.
template <class Work>
void side_by_side(std::size_t count, int workers, Work work) {
    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
    std::mutex mutex;
    auto run = [&] {
        for (std::size_t i; (i = next++) < count;) try {
                work(i);
            } catch (...) {
                std::lock_guard lock(mutex);
                if (!failure) failure = std::current_exception();
                next = count;
            }
    };
    run_together(std::min(count, static_cast<std::size_t>(std::max(1, workers))), [&](std::size_t) { run(); });
    if (failure) std::rethrow_exception(failure);
}

// How many first nodes have the same values in both networks.
std::size_t shared_nodes(const Graph& original, const Graph& variant) {
    std::size_t i = 0, most = std::min(original.nodes.size(), variant.nodes.size());
    while (i < most && original.nodes[i] == variant.nodes[i]) ++i;
    return i;
}

class SharedWeightScorer final : public Scorer {
public:
    SharedWeightScorer(const Graph& original, TensorMap trained, TensorBatches data, const ScorerOptions& options)
        : original_(original),
          options_(options),
          layers_(scored_layers(original)),
          trained_(std::make_shared<TensorMap>(std::move(trained))),
          data_(std::move(data)) {
        bool cpu = data_.images.at(0).is_cpu();
        int threads = options.threads > 0 ? options.threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
        workers_ = cpu ? std::min(threads, max_workers) : 1;
        at_once_ = images_at_once(original, data_.images[0].size(0));
        complete_ = Executor(original, at_once_).graph();
    }

    std::vector<RawScores> score(std::span<const ScoreQuestion> questions, const MeasureSet& wanted) override {
        TorchThreads one(1);
        std::vector<RawScores> answers(questions.size());
        std::vector<std::size_t> order(questions.size());
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return questions[a].seed < questions[b].seed; });
        for (std::size_t first = 0, last = 0; first < order.size(); first = last) {
            std::uint64_t seed = questions[order[first]].seed;
            while (last < order.size() && questions[order[last]].seed == seed) ++last;
            std::shared_ptr<Seed> s = seed_state(seed);
            side_by_side(last - first, workers_, [&](std::size_t i) { answers[order[first + i]] = score_one(*s, *questions[order[first + i]].graph, wanted); });
        }
        return answers;
    }

private:
    struct Seed {
        std::uint64_t seed;
        std::shared_ptr<const TensorMap> weights;
        std::once_flag once;
        KeptForward forward;  // empty where the pass would take too much memory
    };

    RawScores score_one(Seed& s, const Graph& graph, const MeasureSet& wanted) const {
        std::size_t k = static_cast<std::size_t>(s.seed) % data_.images.size();
        Executor executor(graph, at_once_);
        bool rescale = !options_.carry_raw && trained_->empty();
        TensorMap own = carry_parameters(original_, *s.weights, graph, s.seed, rescale);
        std::size_t shared = wanted.weights || at_once_ < data_.images[k].size(0) ? 0 : shared_nodes(complete_, executor.graph());
        if (shared * 8 < complete_.nodes.size()) shared = 0;  // not worth the memory
        if (shared) std::call_once(s.once, [&] { keep(s, k); });
        if (s.forward.values.empty()) shared = 0;
        return score_pass(executor, own, {data_.images[k], data_.labels[k]}, layers_, wanted, {&s.forward, shared});
    }

    void keep(Seed& s, std::size_t k) const {
        std::int64_t bytes = 0, image = data_.images[k].element_size();
        for (const Node& node : complete_.nodes) bytes += element_count(node.shape) * image;
        if (bytes * static_cast<std::int64_t>(std::min(max_seeds, data_.images.size())) > max_kept_bytes) return;
        s.forward = keep_forward(Executor(original_, at_once_), *s.weights, data_.images[k], layers_);
    }

    std::shared_ptr<Seed> seed_state(std::uint64_t seed) {
        for (auto it = seeds_.begin(); it != seeds_.end(); ++it)
            if ((*it)->seed == seed) {
                seeds_.splice(seeds_.begin(), seeds_, it);
                return seeds_.front();
            }
        if (seeds_.size() >= max_seeds) seeds_.pop_back();
        auto state = std::make_shared<Seed>();
        state->seed = seed;
        state->weights = trained_->empty() ? std::make_shared<const TensorMap>(drawn(seed)) : trained_;
        seeds_.push_front(std::move(state));
        return seeds_.front();
    }

    TensorMap drawn(std::uint64_t seed) const {
        TensorMap all = draw_parameters(original_, seed);
        for (auto& [name, tensor] : all) tensor = tensor.to(data_.images[0].options());
        return all;
    }

    Graph original_, complete_;  // complete_: for as many images as are shown at once
    ScorerOptions options_;
    std::vector<std::string> layers_;
    std::shared_ptr<const TensorMap> trained_;
    TensorBatches data_;
    int workers_ = 1;
    std::int64_t at_once_ = 1;                // how many images the network is shown at once
    std::list<std::shared_ptr<Seed>> seeds_;  // most recent first
};

}  // namespace

std::unique_ptr<Scorer> shared_weight_scorer(const Graph& original, TensorMap trained, TensorBatches data, const ScorerOptions& options) {
    return std::make_unique<SharedWeightScorer>(original, std::move(trained), std::move(data), options);
}

}  // namespace loopegg
