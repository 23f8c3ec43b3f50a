// Proves rules that compute a convolution by transforms (Winograd): the matrices of the transforms are multiplied out over the rational numbers.
#pragma once
#include "rules/rule.hpp"
#include "rules/verdict.hpp"

namespace loopegg {

bool is_bilinear(const Rule& rule);  // its right side prepares weights for transforms

// Every form F(m, r) that the rule lists must be the convolution, exactly: for all i, k and l, the sum over products u of
// output[i][u] weights[u][k] input[u][l] is 1 where l = i + k, and else 0.
RuleVerdict prove_bilinear(const Rule& rule);

}  // namespace loopegg
