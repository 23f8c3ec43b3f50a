// The way back from a chosen network to plan.json: rule applications that lead from one node to a given restriction of it.
#pragma once
#include <vector>

#include "graph/graph.hpp"
#include "nest/plan/apply_plan.hpp"

namespace loopegg {

// Applications that make `apply_plan` give the node exactly this domain: cuts, groupings and bottlenecks where these lead to the domain, and the
// nest itself (restrict-nest) otherwise. Empty for a whole domain.
std::vector<Application> applications_for(const Node& node, const Domain& domain, const NamedRules& rules);

}  // namespace loopegg
