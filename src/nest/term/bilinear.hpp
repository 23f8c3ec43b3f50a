// Bilinear algorithms: a correlation (the filter of a convolution) from few products of transformed weights with transformed inputs.
//
//   output (weights g * input d)      is the filter g applied to d, exactly over the rationals (* is by element),
//
// with three matrices that a rule file states ((bilinear NAME ...), rules/read_bilinear.hpp). In two dimensions one algorithm works along columns of an
// image and one along rows. In a term an algorithm is a leaf that holds its matrices, which is what it means and all that it means:
// correlation[1,1,1,0|0,1,-1,1][-1,0,0|1/2,1/2,1/2|1/2,-1/2,1/2|0,0,1][-1,0,1,0|0,1,1,0|0,-1,1,0|0,-1,0,1].
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/term.hpp"
#include "nest/term/rational_matrix.hpp"

namespace loopegg {

struct BilinearForm {
    RationalMatrix output;   // outputs x products
    RationalMatrix weights;  // products x taps
    RationalMatrix input;    // products x inputs
    std::int64_t outputs() const { return output.rows(); }
    std::int64_t products() const { return output.columns(); }
    std::int64_t taps() const { return weights.columns(); }
    std::int64_t inputs() const { return input.columns(); }
    // The matrices have one number of products, and an input for each place that a tap reads for some output.
    bool fits() const { return weights.rows() == products() && input.rows() == products() && inputs() == outputs() + taps() - 1; }
};

// The form that a leaf holds. None where it is no such leaf, or its matrices do not fit together. Whether the matrices are right is for the judge to say.
std::optional<BilinearForm> bilinear_form(const Term& leaf);
Term to_term(const BilinearForm& form);

// The HOW of (prepare HOW VALUE): (bilinear DOWN ALONG), DOWN for the columns of an image (its kernel's height), ALONG for the rows.
struct BilinearPair {
    BilinearForm down, along;
    std::int64_t products() const { return down.products() * along.products(); }
};
std::optional<BilinearPair> bilinear_pair(const Term& how);
Term to_term(const BilinearPair& pair);

// Weights [channels, taps, taps] become [products * products, channels], in double precision and rounded once.
std::vector<float> bilinear_weights(const BilinearPair& pair, const std::vector<float>& weights);

}  // namespace loopegg
