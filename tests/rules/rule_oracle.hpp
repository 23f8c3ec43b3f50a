// Finds out whether a rule is sound on small nests by looking at every instance, one by one. Knows nothing of isl, of digits or of proofs, so that what the
// judge of rules proves can be compared with it.
#pragma once
#include <string>
#include <vector>

#include "rules/rule.hpp"

namespace loopegg {

// What is wrong with a schedule that stands in place of another one of the same statement; empty where nothing is. Under strict-fp, sums must keep their
// order, too.
std::string schedule_fault(const Term& before, const Term& after, bool neural, bool strict_fp);

// Applies the rule to nests of many sizes, some of them made of the numbers in the rule's own conditions, and looks at what it makes. `keeps_sums`: the rule
// is said to keep the order of sums under strict-fp.
struct OracleAnswer {
    std::string fault{};  // the first one, with the nest; empty where there is none
    int applied = 0;
};
OracleAnswer ask_oracle(const Rule& rule, int draws, bool keeps_sums);

}  // namespace loopegg
