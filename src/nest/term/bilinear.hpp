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
#include <string_view>
#include <vector>

#include "base/term.hpp"

namespace loopegg {

// Small matrices of rational numbers as leaves of terms: [1,0,-1/2|0,1,1] has two rows. A term that holds its matrices means the same in every process.
struct Rational {  // in lowest terms, under > 0
    std::int64_t over = 0, under = 1;
    double value() const { return static_cast<double>(over) / static_cast<double>(under); }
    friend bool operator==(const Rational&, const Rational&) = default;
};

// "3", "-1/24", "0.5" is none. None as well where numerator or denominator has more than 9 digits, or the denominator is 0.
std::optional<Rational> rational(std::string_view text);
std::string to_string(const Rational& r);

struct RationalMatrix {
    std::vector<std::vector<Rational>> entries;  // rows of one length, at least one of each
    std::int64_t rows() const { return static_cast<std::int64_t>(entries.size()); }
    std::int64_t columns() const { return static_cast<std::int64_t>(entries.front().size()); }
    std::vector<std::vector<double>> values() const;
    friend bool operator==(const RationalMatrix&, const RationalMatrix&) = default;
};

constexpr std::int64_t max_matrix_side = 64;  // of a matrix that is read

// None where the text is no matrix, or one with a side above max_matrix_side.
std::optional<RationalMatrix> rational_matrix(std::string_view text);
std::string to_string(const RationalMatrix& matrix);

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
