// Chains of nodes that are computed block by block, by measured times.
#pragma once
#include "backends/network/network.hpp"
#include "optimize/run/run.hpp"

namespace loopegg {

// The schedules with the fastest nest that computes each chain of the network block by block. The nests are timed by themselves; whether the network is faster
// with them is for the caller to find out.
Schedules with_blocks(const Run& run, const Graph& graph, Schedules schedules);

}  // namespace loopegg
