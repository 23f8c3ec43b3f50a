// Scalar terms of statements ('(* W I)', '(relu (+ acc E0))') as TIR.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "backends/lower/tir.hpp"
#include "base/term.hpp"

namespace loopegg {

// `leaf` gives the value of a name; numbers are taken as they are.
tv::Expr rounded_to(const std::string& kind, const tv::Expr& x);  // as nest/term/rounding.hpp says, by the bits of the number

// Two numbers as bf16 in one word, and the half of such a word as a number again.
tv::Expr packed_bf16(const tv::Expr& low, const tv::Expr& high);
tv::Expr packed_by_warps(const std::string& kind, const tv::Expr& low, const tv::Expr& high);  // the same on a GPU, as "bf16" or "fp16"
tv::Expr unpacked_bf16(const tv::Expr& word, const tv::Expr& half);

// Numbers as the bytes of one word, the first lowest (nest/term/int8_scales.hpp).
tv::Expr packed_bytes(const std::vector<tv::Expr>& numbers, const tv::Expr& inverse_scale, const tv::Expr& zero);

tv::Expr scalar(const Term& term, const std::function<tv::Expr(const std::string&)>& leaf);

}  // namespace loopegg
