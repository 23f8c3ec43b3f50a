// Proves rules over whole networks for all sizes.
//
// Both sides of an exact rule are walked as src/nest/net/net_walk.hpp walks a network, with symbols for what comes in, for the channels that are wanted, and
// for what the rule's variables stand for. They must end in the same sites and nodes, joined in the same way, with the same widths, read and write the same
// numbers of channels, and the parts of the right side must fit together where those of the left do. A neural rule must have the parts of its left side on
// its right, in their order and each at most once, with less of them.
#pragma once
#include "rules/rule.hpp"

namespace loopegg {

RuleVerdict prove_net_rule(const Rule& rule);

}  // namespace loopegg
