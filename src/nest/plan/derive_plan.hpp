// The way back from a chosen network to plan.json: a derivation as rule applications that lead from one node to a restriction of it.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "nest/plan/apply_plan.hpp"

namespace loopegg {

// A step of a derivation.
struct DerivationStep {
    std::string rule;
    std::map<std::string, Term> with;  // what the variables of the rule stood for
    Term before, after;                // whole nests
    bool backwards = false;            // an exact rule, from its right side to its left side
};

// Applications that make `apply_plan` give the node exactly this domain: the steps of its derivation that change what the nest visits or cut it in parts,
// and the nest itself (restrict-nest) where these steps do not lead to the domain. Empty for a whole domain.
std::vector<Application> applications_for(const Node& node, const std::vector<DerivationStep>& steps, const Domain& domain, const NamedRules& rules);

}  // namespace loopegg
