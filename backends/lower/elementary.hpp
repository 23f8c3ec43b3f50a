// exp, erf and the larger of two numbers as plain arithmetic: a loop over them becomes vectors, which a loop over calls into the C library does not.
#pragma once
#include "backends/lower/tir.hpp"

namespace loopegg {

// Within 2e-7 of e^x, relatively, where e^x is a normal float; 0 or infinity beyond. NaN stays NaN.
tv::Expr exponential(const tv::Expr& x);
// The same, but beyond the normal floats it gives the smallest or largest of them: for quotients, because the quotient of two infinities is NaN.
tv::Expr bounded_exponential(const tv::Expr& x);
// Within 4e-7 of erf(x).
tv::Expr error_function(const tv::Expr& x);
// The larger and the smaller of two numbers. If one operand is NaN, the result is that operand.
tv::Expr larger(const tv::Expr& a, const tv::Expr& b);
tv::Expr smaller(const tv::Expr& a, const tv::Expr& b);

}  // namespace loopegg
