#include "nest/term/int8_scales.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace loopegg {

Int8Scales scales_from(std::span<const float> values) {
    require(values.size() >= 2, "scales of int8 numbers begin with the input's scale and zero");
    return {values[0], values[1], {values.begin() + 2, values.end()}};
}

std::vector<float> weight_scales(std::span<const float> weights, std::int64_t channels) {
    std::vector<float> scales(static_cast<std::size_t>(channels), 1.0f);
    const std::size_t each = weights.size() / scales.size();
    for (std::size_t c = 0; c < scales.size(); ++c) {
        float most = 0;
        for (const float w : weights.subspan(c * each, each)) most = std::max(most, std::fabs(w));
        if (const float scale = most / 127; std::isnormal(scale)) scales[c] = scale;
    }
    return scales;
}

std::uint8_t byte_of(float input, const Int8Scales& s) {
    const float scaled = std::isnan(input) ? s.zero : input * (1 / s.input) + s.zero;
    return static_cast<std::uint8_t>(std::nearbyint(std::clamp(scaled, 0.0f, 255.0f)));
}

std::int8_t whole_weight(float weight, float scale) { return static_cast<std::int8_t>(std::clamp(std::nearbyint(weight / scale), -127.0f, 127.0f)); }

}  // namespace loopegg
