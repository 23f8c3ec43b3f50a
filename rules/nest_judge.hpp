// Tries a rule over loop nests on small instances: isl, the analysis and the interpreter must all find nothing wrong.
#pragma once
#include <optional>

#include "rules/rule.hpp"

namespace loopegg {

struct JudgeEffort {
    int instances = 12;  // how many instances that the rule matches are judged
    int attempts = 600;  // draws of an instance before giving up
};

// Instances are drawn from a seed that depends on the rule alone, so the same rule gets the same answer. An exact rule is refused when some
// instance changes its domain, reverses a dependence, runs dependent instances at once, or computes something else. A neural rule is refused
// when it keeps everything or visits anything new. Any rule is refused when no instance could be tried.
std::optional<Refutation> judge_nest_rule(const Rule& rule, const JudgeEffort& effort = {});

}  // namespace loopegg
