// Conditions on signs of polynomials over the reals: whether they exclude each other. By cases for the signs of symbols, and Fourier and Motzkin's elimination
// over their products, which is exact where the conditions are linear.
#pragma once
#include "rules/judge/piecewise.hpp"

namespace loopegg {

// True only where no values of the symbols meet all conditions.
bool never_met(const SignConditions& conditions);

}  // namespace loopegg
