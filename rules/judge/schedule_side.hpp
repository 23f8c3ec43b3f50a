// One side of a rule over schedules, as the judge reads it: the paths from the first loop to each end, and when an instance is on a path.
#pragma once
#include "rules/judge/axis_space.hpp"

namespace loopegg {

struct SideLoop {
    enum class Kind {
        serial,   // at, unroll, a step of a cat
        apart,    // iterations run at once: par, vec, bind
        partial,  // iterations have sums of their own
        tensor,   // an instruction adds the steps up
    };
    Kind kind = Kind::serial;
    std::string word;                        // "par", "threadIdx.x"
    std::vector<std::string> texts;          // of its digits; equal in two instances where the loop's values are
    std::set<std::string> atoms{};           // the variables of its axis
    std::optional<std::int64_t> constant{};  // of a cat: which part
};

struct SidePath {
    std::vector<SideLoop> loops;   // outermost first
    SizeConditions conditions;     // under which an instance is visited on this path, besides those of its atoms and its tail
    std::set<std::string> atoms;   // the axes that must be defined
    std::set<std::string> walked;  // the digits that its loops go through
    std::string tail;              // the variable for the rest of the list; empty: done
};

struct ScheduleSide {
    std::vector<SidePath> paths;
    std::vector<SizeFact> needs;  // without which the side is no schedule
};

// The schedule of a pattern. Throws NoForm, or AxisSpace::Split.
ScheduleSide schedule_side(const Term& schedule, AxisSpace& axes);

// The loops of a pattern that round, or that sum up in parts: ("tensor.tf32", "partial").
std::multiset<std::string> special_loops(const Term& schedule);

}  // namespace loopegg
