// Narrow and wide floats as they are in files, little-endian, to float32 and back.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>

namespace loopegg {

static_assert(std::endian::native == std::endian::little, "files hold little-endian numbers, as both supported machines do");

template <class T>
T load(const char* bytes) {
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
}

inline float from_bfloat16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

// To the nearest number, ties to the even neighbour. What is no number stays none.
inline std::uint16_t to_bfloat16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if (value != value) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
    return static_cast<std::uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

inline float from_half(std::uint16_t bits) {
    std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16, exponent = bits >> 10 & 0x1F, fraction = bits & 0x3FF;
    if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000u | fraction << 13);
    if (exponent > 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
    float small = static_cast<float>(fraction) * 0x1p-24f;  // subnormal: exact
    return sign ? -small : small;
}

}  // namespace loopegg
