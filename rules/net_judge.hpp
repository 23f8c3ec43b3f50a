// Judges rules over whole networks: the judge tries them on small networks and compares the results with the interpreter.
#pragma once
#include <optional>

#include "rules/language.hpp"
#include "rules/rule.hpp"

namespace loopegg {

bool is_net_rule(const Rule& rule);  // by the operator at the root of its left side

// A neural rule over networks must leave out sites, or instances of sites, and nothing else. The rest must compute what the whole network computes
// when the weights that were left out are zero. The judge refuses exact rules over networks.
std::optional<Refutation> judge_net_rule(const Rule& rule);

}  // namespace loopegg
