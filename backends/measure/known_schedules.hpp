// The schedules of a network's nests that were measured to be fastest, among those that its target's rules give.
#pragma once
#include "backends/network/network.hpp"
#include "store/address.hpp"

namespace loopegg {

struct KnownSchedules {
    Schedules fastest;             // by site; sites of which nothing was measured have none
    std::vector<Term> unmeasured;  // of all sites, each once
};
// Looks at so many schedules of each nest, the cheapest by the estimate first.
KnownSchedules known_schedules(const Graph& graph, const Target& target, std::size_t of_each, const StoreAddress& store);

}  // namespace loopegg
