// How a slice of ours says that it goes on to the end of a dimension, whatever its size.
#pragma once
#include <cstdint>

namespace loopegg {

constexpr std::int64_t to_the_end = std::int64_t{1} << 31;

}  // namespace loopegg
