// What a plan that somebody wrote does to the layers that it changes: whether the guard allows it, and how long the layers take when they are tuned.
#pragma once
#include <nlohmann/json.hpp>

#include "base/progress.hpp"
#include "nest/plan/plan.hpp"
#include "optimize/run/request.hpp"

namespace loopegg {

struct TryRequest {
    OptimizeRequest run;  // the model, the rules, the guard, the target, and how much work goes into schedules; `out` is not used
    Plan plan;
    bool judged = true;  // whether the guard is asked
};

// Each changed layer is tuned by itself, as it was and as the plan leaves it, and both are timed interleaved. Layers that are equal before and after count as
// one. Returns what 'loopegg try --json' prints (docs/reference/formats.md). Throws UserError where a rule does not match, with rules that do.
nlohmann::json try_plan(const TryRequest& request, Progress& progress);

}  // namespace loopegg
