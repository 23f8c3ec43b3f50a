// What the guards of a rule say of its axes: which of them may carry a sum, or an order that must be kept.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "nest/term/statement.hpp"
#include "rules/rule.hpp"

namespace loopegg {

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
