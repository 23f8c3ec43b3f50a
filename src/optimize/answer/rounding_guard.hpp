// The guard of roundings that a user allows. It measures, on data, how far these roundings move the outputs of the returned network from those of float32.
#pragma once
#include <nlohmann/json.hpp>

#include "backends/network/network.hpp"
#include "optimize/run/run.hpp"

namespace loopegg {

// The evidence for result.json: `allowed`, `largest` and `mean` error as shares of the largest output, the limit, how many images gave the same answer, and
// the data. Null where no schedule of the network rounds.
nlohmann::json rounding_evidence(const Run& run, const Graph& graph, const Weights& weights, const Schedules& schedules);

}  // namespace loopegg
