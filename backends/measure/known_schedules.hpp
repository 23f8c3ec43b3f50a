// The fastest measured schedules of a network's nests, among the schedules that the target's rules give.
#pragma once
#include "backends/network/network.hpp"
#include "store/address.hpp"

namespace loopegg {

struct KnownSchedules {
    Schedules fastest;             // by site; a site of which nothing was measured has no entry
    std::vector<Term> unmeasured;  // of all sites, each once
};
// Looks at `of_each` schedules of each nest, the cheapest by the estimate first.
KnownSchedules known_schedules(const Graph& graph, const Target& target, std::size_t of_each, const StoreAddress& store);

}  // namespace loopegg
