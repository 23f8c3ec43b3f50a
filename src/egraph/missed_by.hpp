// What is said of a rule that breaks an invariant although a judge has accepted it. It is the rule's fault first: exit code 1, and not 70.
#pragma once
#include <string>

#include "egraph/analysis.hpp"

namespace loopegg {

inline std::string missed_by_judge(const Analysis& analysis) {
    return analysis.conflict_is_our_fault() ? "; the rule is wrong, although its judge accepted it: take it out of its file, and please report it" : "";
}

}  // namespace loopegg
