// exp, erf and the larger of two as plain arithmetic: a loop over them becomes vectors, which a call into the C library would not.
#pragma once
#include "backends/lower/tir.hpp"

namespace loopegg {

// Within 2e-7 of e^x, relatively, where that is a normal float; 0 or infinity beyond. What is no number stays.
tv::Expr exponential(const tv::Expr& x);
// The same, but the smallest or largest normal float beyond: for quotients in which two infinities would be no number.
tv::Expr bounded_exponential(const tv::Expr& x);
// Within 4e-7 of erf(x).
tv::Expr error_function(const tv::Expr& x);
// The larger and the smaller of two; what is no number stays, whichever of the two it is.
tv::Expr larger(const tv::Expr& a, const tv::Expr& b);
tv::Expr smaller(const tv::Expr& a, const tv::Expr& b);

}  // namespace loopegg
