// The whole pipeline: from a network to the fastest network that rules and guard allow, compiled, measured and explained.
#pragma once
#include <nlohmann/json.hpp>

#include "base/progress.hpp"
#include "optimize/run/request.hpp"

namespace loopegg {

// Runs every stage and writes `out`; returns what result.json holds (docs/reference/formats.md). Throws UserError for what cannot be done.
nlohmann::json optimize(const OptimizeRequest& request, Progress& progress);

}  // namespace loopegg
