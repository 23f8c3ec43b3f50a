// One application of a rule on the way from an original nest to a variant of it.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "base/term.hpp"

namespace loopegg {

struct DerivationStep {
    std::string rule;
    bool neural = false;
    std::vector<std::pair<std::string, Term>> with;  // what the variables of the rule represented, "?g" and 4, in the rule's order
    Term before, after;                              // whole nests
    bool backwards = false;                          // an exact rule was applied from its right side to its left side
};

}  // namespace loopegg
