// A convolution as three nests in a row: its input transformed tile by tile, a batch of products with transformed weights, the tiles transformed back.
//
// The products are a convolution of 1x1 with a group for each element of a transformed tile. The values between the nests are stored in blocks of channels,
// so that each nest works with vectors of channels. Channels that a restricted nest leaves out are left out of the products.
#pragma once
#include <optional>

#include "base/term.hpp"
#include "nest/term/bilinear.hpp"

namespace loopegg {

struct BilinearNests {
    Term input, products, output;  // naive
};

// Gives none where the pair does not apply: another kernel, a stride, a restriction of rows or columns, channels that do not come in fours.
std::optional<BilinearNests> bilinear_nests(const Term& nest, const BilinearPair& pair);

// (prepare HOW (then (then (site INPUT) PRODUCTS) OUTPUT)): what the nest computes, by the pair.
Term bilinear_row(const BilinearPair& pair, const BilinearNests& nests);

}  // namespace loopegg
