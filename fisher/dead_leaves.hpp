// Images for a guard that was given none: discs of all sizes that lie on each other like leaves.
#pragma once
#include <cstdint>
#include <vector>

#include "graph/graph.hpp"

namespace loopegg {

// Images of the shape (n, channels, height, width), drawn by the seed. Like photographs, and unlike noise, they have neighbours alike, edges, as much
// contrast at every size, and channels that mostly agree; every pixel by itself is normally distributed (mean 0, deviation 1).
std::vector<float> dead_leaves(const Shape& images, std::uint64_t seed);

}  // namespace loopegg
