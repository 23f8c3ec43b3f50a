// Checks of products whose operands are rounded to numbers with fewer digits: operands that have more digits, and how far outputs differ.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/kernel/reference.hpp"
#include "graph/weights.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {

inline double largest_difference(std::span<const float> a, std::span<const float> b) {
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::fabs(static_cast<double>(a[i]) - b[i]));
    return most;
}

// Numbers that have more digits than bf16 and TF32.
inline std::vector<std::vector<float>> long_numbers(const Statement& s) {
    std::vector<std::vector<float>> all = sample_operands(s, 3);
    std::uint64_t seed = 0;
    for (std::size_t b = 1; b < all.size(); ++b) all[b] = normal_tensor(s.buffers[b].shape, ++seed, "x").values;
    return all;
}

// Whole numbers from -4 to 4, in no order.
inline Tensor whole_tensor(const Shape& shape, std::uint64_t seed) {
    Tensor tensor = normal_tensor(shape, seed, "whole");
    for (float& v : tensor.values) v = std::clamp(std::nearbyint(2 * v), -4.0f, 4.0f);
    return tensor;
}

// The operands of products, rounded; biases stay.
template <class F>
inline std::vector<std::vector<float>> rounded_products(const Statement& s, std::vector<std::vector<float>> operands, F rounded) {
    for (const Access& r : s.reads)
        for (float& v : operands[static_cast<std::size_t>(r.buffer)]) v = rounded(v);
    return operands;
}

}  // namespace loopegg
