#include "graph/onnx/onnx_attrs.hpp"

#include "base/number.hpp"

namespace loopegg {
namespace {

template <class T>
const T* attr(const OnnxNode& node, const std::string& name) {
    auto found = node.attrs.find(name);
    return found == node.attrs.end() ? nullptr : std::get_if<T>(&found->second);
}

}  // namespace

std::int64_t attr_int(const OnnxNode& node, const std::string& name, std::int64_t absent) {
    const auto* value = attr<std::int64_t>(node, name);
    return value ? *value : absent;
}

double attr_float(const OnnxNode& node, const std::string& name, double absent) {
    const auto* value = attr<float>(node, name);
    return value ? shortest_double(*value) : absent;
}

std::string attr_text(const OnnxNode& node, const std::string& name, const std::string& absent) {
    const auto* value = attr<std::string>(node, name);
    return value ? *value : absent;
}

std::optional<std::vector<std::int64_t>> attr_ints(const OnnxNode& node, const std::string& name) {
    const auto* value = attr<std::vector<std::int64_t>>(node, name);
    return value ? std::optional(*value) : std::nullopt;
}

std::optional<std::vector<float>> attr_floats(const OnnxNode& node, const std::string& name) {
    const auto* value = attr<std::vector<float>>(node, name);
    return value ? std::optional(*value) : std::nullopt;
}

std::optional<std::vector<std::string>> attr_texts(const OnnxNode& node, const std::string& name) {
    const auto* value = attr<std::vector<std::string>>(node, name);
    return value ? std::optional(*value) : std::nullopt;
}

const OnnxTensor* attr_tensor(const OnnxNode& node, const std::string& name) { return attr<OnnxTensor>(node, name); }

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
