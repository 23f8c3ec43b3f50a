// A schedule without measuring: the cheapest of those that the target's rules give, by the estimate. An untuned network runs it, and tuning starts there.
#pragma once
#include "backends/target/target.hpp"
#include "graph/graph.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {

// A whole NEST over the statement, for the target.
Term default_nest(const Statement& statement, const Target& target);

// The loops of `nest`, restricted or not, arranged for the target: the same instances in a faster order. A nest that no rule arranges stays as it stands.
Term arrange(const Term& nest, const Target& target);

// Of a node's first statement, with what its domain leaves.
Term default_nest(const Node& node, const Target& target);

}  // namespace loopegg
