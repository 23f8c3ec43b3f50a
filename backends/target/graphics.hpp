// A GPU target as rules see it, and the rules that arrange its nests.
#pragma once
#include <memory>

#include "backends/target/target.hpp"
#include "rewrite/gpu_rules.hpp"

namespace loopegg {

GpuMachine graphics(const Target& target);
std::shared_ptr<const GpuRules> gpu_rules(const Target& target);   // of the file that ships

}  // namespace loopegg
