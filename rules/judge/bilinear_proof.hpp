// Proves rules that compute a convolution by bilinear algorithms: the nests that they make are those of one convolution and of one pair of algorithms.
#pragma once
#include "rules/rule.hpp"
#include "rules/verdict.hpp"

namespace loopegg {

bool is_bilinear(const Rule& rule);  // its right side prepares weights for an algorithm

// Each algorithm that the rule lists must be the correlation, exactly (bilinear_identity.hpp).
RuleVerdict prove_bilinear(const Rule& rule);

}  // namespace loopegg
