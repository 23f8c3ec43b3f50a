// Where the weights of a network keep the scales of a site whose operands are int8 numbers: a quantized file brings them, or a measurement on data.
#pragma once
#include <string>
#include <string_view>

namespace loopegg {

constexpr std::string_view int8_scales_ending = ".int8";

// The tensor: the input's scale and its zero as a byte, then one scale for each output, if any (scales_from of nest/term/int8_scales.hpp).
inline std::string int8_scales_name(const std::string& site) { return site + std::string(int8_scales_ending); }

}  // namespace loopegg
