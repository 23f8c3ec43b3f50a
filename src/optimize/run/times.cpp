#include "optimize/run/times.hpp"

#include <fmt/format.h>

#include "backends/measure/network_measure.hpp"
#include "backends/target/target.hpp"
#include "graph/model_json.hpp"

namespace loopegg {

Times::Times(const OptimizeRequest& request, const Graph& graph, Target target, const MeasurerOptions& options) : target_(std::move(target)) {
    if (target_.reach != Reach::bundle) {
        workers_ = std::make_unique<TvmMeasurer>(options);
        nests_.emplace(*workers_);
        return;
    }
    if (!request.rounds.empty()) {
        rounds_.emplace(request.rounds, fmt::format("{} ({:.8})", graph.name, hash_of(write_model(graph)).hex()), target_,
                        RoundLimits{request.max_rounds, request.round_programs});
        rounds_->take_in(options.store);
    }
    elsewhere_ = std::make_unique<RoundMeasurer>(target_, options.store, rounds_ ? rounds_->failed() : std::map<Hash128, std::string>{});
    nests_.emplace(*elsewhere_);
}

Timing Times::timing() {
    if (elsewhere_)
        return {*nests_, [this](const Graph& graph, const Weights& weights, const Schedules& schedules, bool last) {
                    return elsewhere_->network(graph, weights, schedules, last ? RoundMeasurer::Use::last : RoundMeasurer::Use::candidate);
                }};
    if (target_.reach == Reach::here) return {*nests_, {}};
    return {*nests_, [this](const Graph& graph, const Weights&, const Schedules& schedules, bool) {
                return sum_of_steps(network_term(graph, schedules, target_), target_, *workers_);
            }};
}

}  // namespace loopegg
