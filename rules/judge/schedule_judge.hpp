// Proves rules over schedules, nests and axes for all sizes.
#pragma once
#include "rules/rule.hpp"
#include "rules/verdict.hpp"

namespace loopegg {

// Both sides of a rule are read as relations whose parameters are the extents and factors. What the rule does to sums and roundings is part of the answer.
// The verdict is `unproved` with the sizes that prevent this, where there are any; `sizes` are the extents among them.
RuleVerdict prove_schedule_rule(const Rule& rule, std::vector<std::int64_t>* sizes = nullptr);

}  // namespace loopegg
