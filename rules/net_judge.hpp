// Judges rules over whole networks: it tries them on small networks and holds them against the interpreter.
#pragma once
#include <optional>

#include "rules/language.hpp"
#include "rules/rule.hpp"

namespace loopegg {

bool is_net_rule(const Rule& rule);  // by the operator that its left side begins with

// A neural rule over networks must leave out sites, or instances of sites, and nothing else. What is left must compute what the whole network computes
// when the weights that are gone are zero. The judge knows no exact rule over networks.
std::optional<Refutation> judge_net_rule(const Rule& rule);

}  // namespace loopegg
