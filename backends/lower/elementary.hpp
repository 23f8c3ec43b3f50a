// exp and erf as plain arithmetic. A loop over them becomes vectors, and a loop over calls into the C library would not.
#pragma once
#include "backends/lower/tir.hpp"

namespace loopegg {

// Within 2e-7 of e^x, relatively, where that is a normal float; 0 or infinity beyond. What is no number stays.
tv::Expr exponential(const tv::Expr& x);
// The same, but the smallest or largest normal float beyond: for quotients in which two infinities would be no number.
tv::Expr bounded_exponential(const tv::Expr& x);
// Within 4e-7 of erf(x).
tv::Expr error_function(const tv::Expr& x);

}  // namespace loopegg
