#include "fisher/dead_leaves.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "fisher/splitmix.hpp"
#include "graph/weights.hpp"

namespace loopegg {
namespace {

constexpr std::int64_t leaves = 400;                  // enough to cover the ground
constexpr double smallest = 1.0 / 10, largest = 0.5;  // radii, as parts of the shorter side
constexpr float common = 0.9f, own = 0.436f;          // brightness that channels share, and what each adds: squares sum to 1

// The density of radii falls with their cube, which makes the picture look alike at every scale.
double radius(double u) { return 1 / std::sqrt(1 / (smallest * smallest) + u * (1 / (largest * largest) - 1 / (smallest * smallest))); }

}  // namespace

std::vector<float> dead_leaves(const Shape& images, std::uint64_t seed) {
    const std::int64_t n = images[0], channels = images[1], height = images[2], width = images[3];
    const double side = static_cast<double>(std::min(height, width));
    std::vector<float> out(static_cast<std::size_t>(n * channels * height * width));
    for (std::int64_t i = 0; i < n; ++i) {
        const std::vector<float> colours = normal_tensor({leaves, channels + 1}, seed, fmt::format("leaves {}", i)).values;
        std::uint64_t state = seed + static_cast<std::uint64_t>(i) * 7919;
        const auto uniform = [&] { return static_cast<double>(splitmix(state) >> 11) * 0x1p-53; };
        for (std::int64_t leaf = 0; leaf < leaves; ++leaf) {
            const double y = uniform() * static_cast<double>(height), x = uniform() * static_cast<double>(width);
            const double r = leaf == 0 ? 2 * static_cast<double>(height + width) : radius(uniform()) * side;  // the first is the ground
            const float* colour = &colours[static_cast<std::size_t>(leaf * (channels + 1))];
            const auto first = [](double at) { return static_cast<std::int64_t>(std::max(0.0, std::ceil(at))); };
            for (std::int64_t row = first(y - r); row < height && static_cast<double>(row) <= y + r; ++row)
                for (std::int64_t column = first(x - r); column < width && static_cast<double>(column) <= x + r; ++column) {
                    const double dy = static_cast<double>(row) - y, dx = static_cast<double>(column) - x;
                    if (dy * dy + dx * dx > r * r) continue;
                    for (std::int64_t c = 0; c < channels; ++c)
                        out[static_cast<std::size_t>(((i * channels + c) * height + row) * width + column)] = common * colour[0] + own * colour[c + 1];
                }
        }
    }
    return out;
}

}  // namespace loopegg
