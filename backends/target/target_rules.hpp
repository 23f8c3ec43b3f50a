// A target's machine as rules see it, and the rules that its schedules and its fused nests come from.
#pragma once
#include <memory>

#include "backends/target/target.hpp"
#include "graph/graph.hpp"
#include "nest/term/statement.hpp"
#include "rewrite/fusion_rules.hpp"
#include "rewrite/schedule_rules.hpp"

namespace loopegg {

GpuMachine gpu_machine(const Target& target);
VectorMachine vector_machine(const Target& target);

// The rules of Target::rules and of the shipped files.
std::shared_ptr<const ScheduleRules> schedule_rules(const Target& target);
std::shared_ptr<const FusionRules> fusion_rules(const Target& target);

// A whole NEST over the statement, for the target: the schedule that the estimate finds cheapest, without measuring. An untuned network runs with it, and tuning
// starts from it.
Term default_nest(const Statement& statement, const Target& target);

// The loops of `nest`, restricted or not, arranged for the target: the same instances in a faster order. A nest that no rule arranges is unchanged.
Term arrange(const Term& nest, const Target& target);

// A NEST over a node's first statement that visits what the node's domain leaves.
Term default_nest(const Node& node, const Target& target);

}  // namespace loopegg
