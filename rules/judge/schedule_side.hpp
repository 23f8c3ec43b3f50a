// One side of a rule over schedules, as the judge reads it: the paths from the first loop to each end, and when an instance is on a path.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "nest/term/statement.hpp"
#include "rules/judge/axis_space.hpp"
#include "rules/rule.hpp"

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

// What the guards of a rule say of its axes: which of them may carry a sum, or an order that must be kept.

// Two instances are tied where they touch one output element, and bound where one must wait for the other. Axes agree at a pair of instances when they have
// the same values there: at tied instances all axes that move the output agree, at bound ones all but those that keep an order.
struct Agreement {
    std::vector<std::set<std::string>> tied, bound;  // the smallest sets of axes that agree; empty: the guards never hold
    std::set<std::string> may_move;                  // axes that may move the output, and so may be no sum
};

// Of the rule's axes `atoms`, under strict-fp or not. Guards that say something else are taken to hold.
Agreement agreement_of(const Rule& rule, const std::set<std::string>& atoms, bool strict_fp);

// The roundings that guards of the rule ask for: "tf32", or a variable.
std::set<std::string> asked_roundings(const Rule& rule);

}  // namespace loopegg
