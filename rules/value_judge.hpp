// Tries a rule over values, which spans sites, on small sites in a row: the interpreter must compute the same for both sides.
#pragma once
#include <optional>

#include "rules/rule.hpp"

namespace loopegg {

// Whether the rule is about values: (site ...), (then ...), (prepare ...).
bool is_value_rule(const Rule& rule);

// The sites are convolutions, products, pools and element-wise nests, restored and not, with all that may follow them. A rule is refused when
// the right side takes other operands than the left, when the right side computes something else on whole numbers, or when nothing could be tried.
std::optional<Refutation> judge_value_rule(const Rule& rule);

}  // namespace loopegg
