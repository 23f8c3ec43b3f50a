// How far the float32 outputs of a site may be from its sums over the real numbers, whatever the order of these sums: an a-priori bound from the term alone.
//
// Each float32 operation rounds its result by a factor 1 + d, |d| <= u = 2^-24, where nothing overflows or underflows. A term of a sum that is rounded k times
// on its way to the output is off by at most gamma(k) = k u / (1 - k u) of its absolute value. An output y of weights w and inputs x is then within
//
//   |computed - y| <= bound * (max |x| * sum of |w| + |bias| + |addend|),   bound = growth * ((1 + r)^2 (1 + gamma(roundings)) - 1),
//
// the sum being over the weights of the output. r is what operands are rounded to (2^-8 for bf16, 2^-11 for tf32 and fp16), 0 in float32.
//   growth     1 for a sum. Of a bilinear algorithm with matrices C, A, B: the largest element of |C| diag(|B| 1) |A|, by which its sums of absolute values
//              may be larger than those of the filter; of two dimensions, the product of both.
//   roundings  n for a sum of n products, in any order: one product and at most n - 1 additions. 2 for transformed weights, the non-zero entries of a row
//              plus 3 for each transform of tiles (coefficients are rounded, too), the input channels for the products. 4 in int8, whose sums are whole
//              numbers. One for each bias and addition that follows.
// In int8, r is 1/253, max |x| is the largest input that the scale represents, and the sum of |w| is n times the largest |w|; an input that the scale cuts
// off has no bound.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/term.hpp"

namespace loopegg {

struct ErrorBound {
    std::int64_t terms = 0;  // of the sum that is an output
    std::int64_t roundings = 0;
    double growth = 1;
    std::string operands;  // float32, or what they are rounded to
    double bound = 0;
};

// Of a NEST or a (prepare (bilinear ...) ROW). None for what is no sum of products of two operands.
std::optional<ErrorBound> error_bound(const Term& value);

}  // namespace loopegg
