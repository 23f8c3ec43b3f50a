// Extents and places are signed in networks, and the standard library counts without a sign.
#pragma once
#include <cstddef>
#include <cstdint>

namespace loopegg {

inline std::size_t at(std::int64_t place) { return static_cast<std::size_t>(place); }

}  // namespace loopegg
