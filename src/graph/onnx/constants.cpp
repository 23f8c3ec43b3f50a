#include "graph/onnx/constants.hpp"

#include "base/number.hpp"

namespace loopegg {

std::optional<double> scalar_of(const OnnxTensor& t) {
    if (t.floats.size() + t.doubles.size() + t.integers.size() != 1) return std::nullopt;
    if (!t.doubles.empty()) return t.doubles[0];
    return t.floats.empty() ? static_cast<double>(t.integers[0]) : shortest_double(t.floats[0]);
}

std::vector<float> floats_of(const OnnxTensor& t) {
    if (!t.doubles.empty()) return {t.doubles.begin(), t.doubles.end()};
    if (!t.integers.empty()) return {t.integers.begin(), t.integers.end()};
    return t.floats;
}

std::optional<std::vector<std::int64_t>> integers_of(const OnnxTensor& t) {
    return t.kind == OnnxTensor::Kind::int64 ? std::optional(t.integers) : std::nullopt;
}

}  // namespace loopegg
