// A schedule without measuring: the one of the target's rules that the estimate finds cheapest. An untuned network runs with it, and tuning starts from it.
#pragma once
#include "backends/target/target.hpp"
#include "graph/graph.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {

// A whole NEST over the statement, for the target.
Term default_nest(const Statement& statement, const Target& target);

// The loops of `nest`, restricted or not, arranged for the target: the same instances in a faster order. A nest that no rule arranges stays as it is.
Term arrange(const Term& nest, const Target& target);

// The same for one core, which rounds nothing: other code shares the work among the cores.
Term arrange_for_one_core(const Term& nest, Target target);

// A NEST over a node's first statement that visits what the node's domain leaves.
Term default_nest(const Node& node, const Target& target);

}  // namespace loopegg
