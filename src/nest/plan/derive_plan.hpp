// The way back from a chosen network to plan.json: a derivation as rule applications that lead from one node to a restriction of it.
#pragma once
#include <vector>

#include "graph/graph.hpp"
#include "nest/plan/apply_plan.hpp"
#include "nest/plan/derivation_step.hpp"

namespace loopegg {

// Applications that make `apply_plan` give the node exactly this domain: the steps of its derivation that change what the nest visits or cut it in parts,
// and the nest itself (restrict-nest) where these steps do not lead to the domain. Empty for a whole domain.
std::vector<Application> applications_for(const Node& node, const std::vector<DerivationStep>& steps, const Domain& domain, const NamedRules& rules);

}  // namespace loopegg
