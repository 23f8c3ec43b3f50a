// Random valid terms of the nest language, on which lowering is tried.
#pragma once
#include <cstdint>

#include "base/term.hpp"

namespace loopegg {

// A small statement of any kind with a random schedule: split, reordered, fused, restricted, cut, staged, with loops of every kind.
// Terms for GPUs bind output loops to blocks and threads. Every term resolves; the same seed gives the same term.
Term random_nest(std::uint64_t seed, bool gpu);

}  // namespace loopegg
