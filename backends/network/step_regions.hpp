// Which consecutive steps of a network need nothing of each other: their parallel loops run in one region, with one barrier behind all of them.
#pragma once
#include <vector>

#include "backends/network/network_plan.hpp"

namespace loopegg {

// For every step the region that it is in: the first of its steps, and the one behind its last.
struct StepRegion {
    int first = 0, end = 0;
};
std::vector<StepRegion> step_regions(const NetworkPlan& plan);

}  // namespace loopegg
