// Images for a guard whose user gave none: discs of all sizes that lie on each other like leaves.
#pragma once
#include <cstdint>
#include <vector>

#include "graph/graph.hpp"

namespace loopegg {

// The seed draws images of the shape (n, channels, height, width). Like photographs, and unlike noise, they have similar neighbours, edges, as much
// contrast at every size, and channels that mostly agree. Every pixel by itself is normally distributed (mean 0, deviation 1).
std::vector<float> dead_leaves(const Shape& images, std::uint64_t seed);

}  // namespace loopegg
