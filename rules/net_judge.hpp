// Tries rules over whole networks on small networks, and compares what their two sides leave of the sites, and what they compute.
#pragma once
#include <optional>

#include "rules/language.hpp"
#include "rules/rule.hpp"

namespace loopegg {

bool is_net_rule(const Rule& rule);  // by the operator at the root of its left side

// An exact rule must leave the same sites as they are, and the network must compute the same. A neural rule must leave out sites, or channels of sites, and
// keep the rest in its order; what is left must be a network that writes as many channels as before.
std::optional<Refutation> judge_net_rule(const Rule& rule);

}  // namespace loopegg
