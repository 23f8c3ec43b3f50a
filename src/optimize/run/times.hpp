// Where a run gets its times from: workers on this machine, a board, or rounds of bundles.
#pragma once
#include <memory>
#include <optional>

#include "backends/measure/round_measurer.hpp"
#include "backends/measure/tvm_measurer.hpp"
#include "optimize/run/charged_once.hpp"
#include "optimize/run/rounds.hpp"
#include "optimize/run/run.hpp"

namespace loopegg {

class Times {
public:
    Times(const OptimizeRequest& request, const Graph& graph, Target target, const MeasurerOptions& options);

    Timing timing();

    bool in_rounds() const { return rounds_.has_value(); }
    nlohmann::json next_round(Progress& progress) { return rounds_->next(*elsewhere_, progress); }

private:
    Target target_;
    std::unique_ptr<TvmMeasurer> workers_;
    std::unique_ptr<RoundMeasurer> elsewhere_;
    std::optional<ChargedOnce> nests_;  // one of the two
    std::optional<Rounds> rounds_;
};

}  // namespace loopegg
