// Judges rules over whole networks: tried on small networks, and held against the interpreter.
#pragma once
#include <optional>

#include "rules/language.hpp"
#include "rules/rule.hpp"

namespace loopegg {

bool is_net_rule(const Rule& rule);   // by the operator that its left side begins with

// A neural rule over networks must leave sites out, or instances of some, and nothing else: what is left computes what the whole network computes
// where the weights that are gone are zero. No exact rule over networks is known to the judge.
std::optional<Refutation> judge_net_rule(const Rule& rule);

}  // namespace loopegg
