// exp and erf as plain arithmetic: a loop over them becomes vectors, which a call into the C library would not.
#pragma once
#include "backends/lower/tir.hpp"

namespace loopegg {

// Within 2e-7 of e^x, relatively, where that is a normal float; the smallest or largest such number beyond.
tv::Expr exponential(const tv::Expr& x);
// Within 4e-7 of erf(x).
tv::Expr error_function(const tv::Expr& x);

}  // namespace loopegg
