// The plan of a derivation: what 'loopegg apply' takes to make the same network.
#pragma once
#include "graph/graph.hpp"
#include "nest/plan/apply_plan.hpp"
#include "network/derivation.hpp"

namespace loopegg {

// Throws InternalFault where no plan makes the network.
Plan plan_of(const Derivation& derivation, const Graph& original, const Graph& network, const NamedRules& rules);

// The part of the plan that is about the nests of single sites. `before`: the network that rules over networks made.
std::vector<SiteStep> site_steps(const Derivation& derivation, const Graph& before, const NamedRules& rules);

}  // namespace loopegg
