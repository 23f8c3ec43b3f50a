// Scalar terms of statements ('(* W I)', '(relu (+ acc E0))') as TIR.
#pragma once
#include <functional>
#include <string>

#include "backends/lower/tir.hpp"
#include "base/term.hpp"

namespace loopegg {

// `leaf` gives the value of a name; numbers are taken as they stand.
tv::Expr rounded_to_tf32(const tv::Expr& x);  // as nest/term/rounding.hpp says, by the bits of the number

tv::Expr scalar(const Term& term, const std::function<tv::Expr(const std::string&)>& leaf);

}  // namespace loopegg
