// Nests that compute a chain of nodes block by block, with blocks of several sizes.
#pragma once
#include "backends/network/network_plan.hpp"

namespace loopegg {

// The nests for each size of the blocks that a core's caches hold, the most promising first. Each part has its default schedule for one core.
std::vector<Term> block_candidates(const BlockChain& chain, const Target& target);

// Schedules with the first candidate for each chain of the network whose values between its nodes do not stay in the caches: what is estimated to be faster.
Schedules with_block_estimates(const Graph& graph, Schedules schedules, const Target& target);

}  // namespace loopegg
