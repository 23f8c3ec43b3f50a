// Proves rules over values that are rows of numbers: reductions along rows, functions of them, and products of
// matrices. Both sides compute the same over the real
// numbers, whatever the sizes and values are.
#pragma once
#include "rules/rule.hpp"
#include "rules/verdict.hpp"

namespace loopegg {

// Whether a side of the rule has several values at once, or values in blocks (nest/term/value.hpp).
bool is_row_rule(const Rule& rule);

// The element of a value is a quotient of polynomials over e to the power of elements, sums along rows, and unknown functions. The blocks in which a value
// comes do not change the value, but they change the order of its sums, and so does every rule whose sides are not the same terms.
RuleVerdict prove_row_rule(const Rule& rule);

}  // namespace loopegg
