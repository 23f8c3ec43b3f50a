// The guard of roundings that a user allows: how far they move the outputs of the returned network from float32's, on data.
#pragma once
#include <nlohmann/json.hpp>

#include "backends/network/network.hpp"
#include "optimize/optimize.hpp"

namespace loopegg {

// What result.json says of it: `allowed`, `largest` and `mean` error as shares of the largest output, the limit, how many images gave the same answer, the
// data. Nothing where no schedule of the network rounds.
nlohmann::json rounding_evidence(const OptimizeRequest& request, const Graph& graph, const Weights& weights, const Schedules& schedules);

}  // namespace loopegg
