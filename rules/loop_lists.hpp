// Lists of loops in rules over nests: the tiles that a nest can have, and schedules written with one loop for each axis of a list.
//
// A rule that arranges a whole nest cannot know how many loops the nest has. So a right side may hold lists of axes. A loop over a list is one loop for
// each axis, outermost first, and a loop over an empty list is no loop. The lists are made from the naive loops over the instances that the nest visits.
#pragma once
#include <vector>

#include "rules/language.hpp"

namespace loopegg {

std::vector<ListKind> loop_lists();
std::vector<FunctionKind> loop_functions();

}  // namespace loopegg
