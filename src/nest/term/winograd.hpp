// Winograd's minimal filtering F(m, r): m outputs of a filter of r taps from m + r - 1 products, by evaluating polynomials at so many points.
//
// The matrices follow from the points alone (0, 1, -1, 2, -2, 1/2, -1/2 in this order, and infinity). The rows of the input's matrix and the columns of
// the output's matrix are scaled so that both hold whole numbers. The weights' matrix makes up for this, and its entries are the only fractions. So
//
//   output (weights g * input d)      is the filter g applied to d, exactly over the rationals (* is by element),
//
// and in two dimensions each matrix is applied along rows and along columns.
#pragma once
#include <cstdint>
#include <vector>

namespace loopegg {

struct WinogradForm {
    int outputs, taps;
    int products() const { return outputs + taps - 1; }
    std::vector<std::vector<double>> input;    // products x products, whole numbers
    std::vector<std::vector<double>> output;   // outputs x products, whole numbers
    std::vector<std::vector<double>> weights;  // products x taps
    double denominator;                        // the smallest whole number by which all of `weights` become whole
};

// Throws UserError where there is no such form: outputs and taps must be at least 2, with at most 8 points.
const WinogradForm& winograd_form(std::int64_t outputs, std::int64_t taps);

// Weights [channels, taps, taps] become [products * products, channels], in double precision and rounded once.
std::vector<float> winograd_weights(const WinogradForm& form, const std::vector<float>& weights);

}  // namespace loopegg
