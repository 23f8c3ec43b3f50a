// Where every value of a network is in one arena: values that never live at the same time share memory.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backends/network/network_plan.hpp"

namespace loopegg {

// Which consecutive steps of a network need nothing of each other: their parallel loops run in one region, with one barrier behind all of them.

// For every step the region that it is in: the first of its steps, and the one behind its last.
struct StepRegion {
    int first = 0, end = 0;
};
std::vector<StepRegion> step_regions(const NetworkPlan& plan);

struct MemoryPlan {
    std::map<std::string, std::int64_t> offsets;  // floats, multiples of 16, by value (constants are not in the arena)
    std::int64_t floats = 0;
};

// Lets the parts of a concat be written where they belong, and drops the copies that this saves.
void place_concats(NetworkPlan& plan, const std::vector<std::string>& inputs);

// Inputs live from the first step on, and outputs to the last. What one step of a region uses lives as long as the region.
MemoryPlan plan_memory(const NetworkPlan& plan, const std::vector<StepRegion>& regions, const std::vector<std::string>& inputs,
                       const std::vector<std::string>& outputs);

// The value that holds `value`, and the offset of `value` in it.
std::pair<std::string, std::int64_t> home(const NetworkPlan& plan, std::string value);

}  // namespace loopegg
