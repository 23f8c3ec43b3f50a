// Rules made wrong by construction: every rule with one operator, bound, factor, condition or operand changed.
#pragma once
#include <string>
#include <vector>

#include "rules/rule.hpp"

namespace loopegg {

struct Mutant {
    std::string edit;  // "another operator", "a guard is lost"
    std::string text;  // the rule
};

// All mutants of a rule, each once. Many of them cannot be read (a number where an axis is wanted), and some are equal to the rule.
std::vector<Mutant> mutants_of(const Rule& rule);

}  // namespace loopegg
