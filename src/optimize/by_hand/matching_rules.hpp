// Which rules match a site, for a person whose rule did not.
#pragma once
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "nest/plan/plan.hpp"
#include "rewrite/plan_rules.hpp"
#include "rules/rule.hpp"

namespace loopegg {

// The rules of a book over single nests that restrict or cut the site after some applications, each with values of its lists that it takes there:
// "group-axes a=co b=ci g=2|4|8". `layer`: a network that has the site, the smaller the faster.
std::vector<std::string> matching_rules(const Graph& layer, const SiteStep& before, const RuleBook& book, const PlanRules& rules);

}  // namespace loopegg
