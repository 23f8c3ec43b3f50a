// Loops over activations for which torch would need several passes. They take plain arrays and give sums.
#pragma once
#include <array>
#include <cstdint>
#include <span>

namespace loopegg {

constexpr std::int64_t max_coded_images = 8;

// How many units have each code; bit n of a unit's code says whether image n switches it on. values: images x units.
struct CodeCounts {
    std::array<std::int64_t, 1 << max_coded_images> units{};
    std::int64_t idle = 0;  // units whose value is the same for all images
};
CodeCounts count_codes(std::span<const float> values, std::int64_t images);

// The sum over rows of (sum over columns of a b)^2; both are rows x columns.
double sum_of_squared_products(std::span<const float> a, std::span<const float> b, std::int64_t columns);

}  // namespace loopegg
