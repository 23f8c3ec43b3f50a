// Random terms of the nest language that mean something: what lowering is tried on.
#pragma once
#include <cstdint>

#include "base/term.hpp"

namespace loopegg {

// A small statement of any kind with a random schedule: split, reordered, fused, restricted, cut, staged, with loops of every kind.
// Terms for GPUs bind output loops to blocks and threads. Always resolves; the same seed gives the same term.
Term random_nest(std::uint64_t seed, bool gpu);

}  // namespace loopegg
