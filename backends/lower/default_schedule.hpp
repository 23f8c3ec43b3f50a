// A good schedule without measuring, as an explicit term: the cheapest by the estimate of what the target's rules give. What an untuned network runs.
#pragma once
#include "backends/target/target.hpp"
#include "graph/graph.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {

// A whole NEST over the statement, for the target.
Term default_nest(const Statement& statement, const Target& target);

// The loops of `nest` (any NEST over whole digits, such as schedule_of gives for a restricted domain) arranged for the target:
// the same instances in a faster order. Falls back to the nest as it stands.
Term arrange(const Term& nest, const Target& target);

// Of a node's first statement, with what its domain leaves.
Term default_nest(const Node& node, const Target& target);

}  // namespace loopegg
