// A target's machine as rules see it, and the rules that its schedules and its fused nests come from.
#pragma once
#include <memory>

#include "backends/target/target.hpp"
#include "rewrite/fusion_rules.hpp"
#include "rewrite/schedule_rules.hpp"

namespace loopegg {

GpuMachine gpu_machine(const Target& target);
VectorMachine vector_machine(const Target& target);

// The rules of Target::rules and of the shipped files.
std::shared_ptr<const ScheduleRules> schedule_rules(const Target& target);
std::shared_ptr<const FusionRules> fusion_rules(const Target& target);

}  // namespace loopegg
