// The way back from a chosen network to plan.json: a derivation as rule applications that lead from one node to a restriction of it.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "base/term.hpp"
#include "graph/graph.hpp"
#include "nest/plan/apply_plan.hpp"

namespace loopegg {

// One application of a rule on the way from an original nest to a variant of it.
struct DerivationStep {
    std::string rule;
    bool neural = false;
    std::vector<std::pair<std::string, Term>> with;  // what the variables of the rule represented, "?g" and 4, in the rule's order
    Term before, after;                              // whole nests
    bool backwards = false;                          // an exact rule was applied from its right side to its left side
};

// Applications that make `apply_plan` give the node exactly this domain: the steps of its derivation that change what the nest visits or cut it in parts,
// and the nest itself (restrict-nest) where these steps do not lead to the domain. Empty for a whole domain.
std::vector<Application> applications_for(const Node& node, const std::vector<DerivationStep>& steps, const Domain& domain, const NamedRules& rules);

}  // namespace loopegg
