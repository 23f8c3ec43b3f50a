// A good schedule without search, as an explicit term: what an untuned network runs, and where tuning starts.
#pragma once
#include "backends/target/target.hpp"
#include "graph/graph.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {

// A whole NEST over the statement, for the target.
Term default_nest(const Statement& statement, const Target& target);

// Arranges the loops of `nest` for the target: the same instances in a faster order. `nest` is any NEST over whole digits, such as schedule_of
// gives for a restricted domain. Where no arrangement is known, the nest stays as it is.
Term arrange(const Term& nest, const Target& target);

// Of a node's first statement, with what its domain leaves.
Term default_nest(const Node& node, const Target& target);

}  // namespace loopegg
