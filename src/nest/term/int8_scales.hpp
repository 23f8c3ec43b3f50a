// How operands of products become whole numbers of 8 bits, and the sums of these products become numbers again: what (bind tensor.int8 ...) computes.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace loopegg {

// An input x is the byte clamp(round(x * (1 / input) + zero), 0, 255), in float32, ties to even; a NaN is the byte of 0. A weight w is the whole number
// clamp(round(w / weights[channel]), -127, 127). A sum of (byte - zero) * whole number, exact, is rounded to float32 once and multiplied by
// input * weights[channel]. Without scales, whole numbers from -127 to 127 are themselves.
struct Int8Scales {
    float input = 1, zero = 128;
    std::vector<float> weights{};  // one for each output channel; empty: 1 each
};

// Scales as the values of a tensor: the input's, its zero, and the weights' where they are given.
Int8Scales scales_from(std::span<const float> values);

// Symmetric scales of weights: the largest magnitude of a channel becomes 127. A channel of zeros has scale 1.
std::vector<float> weight_scales(std::span<const float> weights, std::int64_t channels);

std::uint8_t byte_of(float input, const Int8Scales& scales);
std::int8_t whole_weight(float weight, float scale);

}  // namespace loopegg
