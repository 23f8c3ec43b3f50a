// Lists of loops in rules over nests: what tiles a nest has, and schedules written with one loop for each axis of a list.
//
// A rule that arranges a whole nest cannot know how many loops it has. So a right side may hold lists of axes. A loop over a list is one loop for
// each axis, outermost first, and a loop over an empty list is no loop. The lists come from the naive loops over what the nest visits.
#pragma once
#include <vector>

#include "rules/language.hpp"

namespace loopegg {

std::vector<ListKind> loop_lists();
std::vector<FunctionKind> loop_functions();

}  // namespace loopegg
