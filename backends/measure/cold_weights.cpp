#include "backends/measure/cold_weights.hpp"

#include <algorithm>
#include <bit>

namespace loopegg {
namespace {

constexpr std::int64_t least = std::int64_t{1} << 20, most = std::int64_t{128} << 20;
constexpr std::int64_t line_floats = 16;  // floats

}  // namespace

float* ColdWeights::next(std::int64_t floats) {
    const std::int64_t stretch = (floats + 2 * line_floats - 1) / line_floats * line_floats;  // with a vector of slack behind the weights, as in a network
    const auto size = static_cast<std::int64_t>(memory_.size());
    if (stretch > size || size < bytes_ / static_cast<std::int64_t>(sizeof(float)))
        memory_ = AlignedFloats(static_cast<std::size_t>(std::max(stretch, bytes_ / static_cast<std::int64_t>(sizeof(float)))), 1.0f), at_ = 0;
    if (at_ + stretch > static_cast<std::int64_t>(memory_.size())) at_ = 0;
    float* here = memory_.data() + at_;
    at_ += stretch;
    return here;
}

std::int64_t cold_bytes_for(std::int64_t weight_bytes) {
    if (weight_bytes < least) return 0;
    return std::min(most, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(weight_bytes))));
}

std::int64_t cold_bytes_for(const Weights& weights) {
    std::int64_t bytes = 0;
    for (const auto& [name, tensor] : weights) bytes += static_cast<std::int64_t>(tensor.values.size() * sizeof(float));
    return cold_bytes_for(bytes);
}

std::string timing_words(std::int64_t cold_bytes) { return cold_bytes == 0 ? "warm" : "cold " + std::to_string(cold_bytes >> 20) + " MiB"; }

}  // namespace loopegg
