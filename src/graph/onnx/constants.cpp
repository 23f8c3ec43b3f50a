#include "graph/onnx/constants.hpp"

#include <algorithm>
#include <cmath>

#include "graph/onnx/short_float.hpp"

namespace loopegg {
namespace {

using Ints = std::vector<std::int64_t>;

std::size_t size_of(const OnnxTensor& t) { return t.floats.size() + t.doubles.size() + t.integers.size(); }

OnnxTensor of_integers(Ints values, bool scalar = false) {
    Ints dims = scalar ? Ints{} : Ints{static_cast<std::int64_t>(values.size())};
    return {OnnxTensor::Kind::int64, std::move(dims), {}, {}, std::move(values)};
}

std::optional<OnnxTensor> arithmetic(const std::string& op, const OnnxTensor& a, const OnnxTensor& b) {
    std::size_t n = std::max(size_of(a), size_of(b));
    if ((size_of(a) != n && size_of(a) != 1) || (size_of(b) != n && size_of(b) != 1) || n > 4096) return std::nullopt;
    const OnnxTensor& larger = size_of(a) == n ? a : b;
    auto combine = [&](auto x, auto y) -> std::optional<decltype(x)> {
        if (op == "Add") return x + y;
        if (op == "Sub") return x - y;
        if (op == "Mul") return x * y;
        if (y == 0) return std::nullopt;
        return x / y;
    };
    OnnxTensor out{a.kind, larger.dims};
    for (std::size_t i = 0; i < n; ++i) {
        std::size_t p = size_of(a) == 1 ? 0 : i, q = size_of(b) == 1 ? 0 : i;
        if (a.kind == OnnxTensor::Kind::int64 && b.kind == OnnxTensor::Kind::int64) {
            constexpr std::int64_t large = std::int64_t{1} << 31;   // no sum or product of smaller ones overflows
            if (a.integers[p] < -large || a.integers[p] > large || b.integers[q] < -large || b.integers[q] > large) return std::nullopt;
            auto v = combine(a.integers[p], b.integers[q]);
            if (!v) return std::nullopt;
            out.integers.push_back(*v);
        } else if (a.kind == OnnxTensor::Kind::float32 && b.kind == OnnxTensor::Kind::float32) {
            auto v = combine(a.floats[p], b.floats[q]);
            if (!v) return std::nullopt;
            out.floats.push_back(*v);
        } else {
            return std::nullopt;
        }
    }
    return out;
}

std::optional<OnnxTensor> transpose(const OnnxTensor& t, const Ints& perm) {
    if (t.kind != OnnxTensor::Kind::float32 || t.dims.size() != 2 || perm != Ints{1, 0}) return std::nullopt;
    OnnxTensor out{t.kind, {t.dims[1], t.dims[0]}, std::vector<float>(t.floats.size())};
    std::size_t rows = static_cast<std::size_t>(t.dims[0]), columns = static_cast<std::size_t>(t.dims[1]);
    for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < columns; ++j) out.floats[j * rows + i] = t.floats[i * columns + j];
    return out;
}

std::optional<OnnxTensor> cast(OnnxTensor t, std::int64_t to) {
    constexpr std::int64_t to_float = 1, to_int32 = 6, to_int64 = 7, to_double = 11;
    // A double cast to float keeps its digits here: a value is rounded when it is used.
    if (to == to_float || to == to_double) {
        if (t.kind == OnnxTensor::Kind::int64) t.kind = OnnxTensor::Kind::float32, t.floats.assign(t.integers.begin(), t.integers.end()), t.integers.clear();
        return t;
    }
    if ((to == to_int32 || to == to_int64) && t.kind == OnnxTensor::Kind::int64) return t;
    return std::nullopt;
}

}  // namespace

std::optional<double> scalar_of(const OnnxTensor& t) {
    if (size_of(t) != 1) return std::nullopt;
    if (!t.doubles.empty()) return t.doubles[0];
    return t.floats.empty() ? static_cast<double>(t.integers[0]) : shortest_double(t.floats[0]);
}

std::vector<float> floats_of(const OnnxTensor& t) {
    if (!t.doubles.empty()) return {t.doubles.begin(), t.doubles.end()};
    if (!t.integers.empty()) return {t.integers.begin(), t.integers.end()};
    return t.floats;
}

std::optional<Ints> integers_of(const OnnxTensor& t) { return t.kind == OnnxTensor::Kind::int64 ? std::optional(t.integers) : std::nullopt; }

std::optional<OnnxTensor> fold(const OnnxNode& node, const OnnxConstants& constants) {
    if (node.outputs.size() != 1) return std::nullopt;
    if (node.op == "Constant") {
        if (auto t = node.attrs.find("value"); t != node.attrs.end() && std::holds_alternative<OnnxTensor>(t->second)) return std::get<OnnxTensor>(t->second);
        if (auto f = node.attrs.find("value_float"); f != node.attrs.end() && std::holds_alternative<float>(f->second)) return OnnxTensor{OnnxTensor::Kind::float32, {}, {std::get<float>(f->second)}};
        if (auto i = node.attrs.find("value_int"); i != node.attrs.end() && std::holds_alternative<std::int64_t>(i->second)) return of_integers({std::get<std::int64_t>(i->second)}, true);
        if (auto i = attr_ints(node, "value_ints")) return of_integers(*i);
        return std::nullopt;
    }
    std::vector<const OnnxTensor*> in;
    for (const std::string& name : node.inputs) {
        auto found = constants.find(name);
        if (found == constants.end()) return std::nullopt;
        in.push_back(&found->second);
    }
    if (in.empty()) return std::nullopt;
    if (node.op == "Identity") return *in[0];
    if (node.op == "Cast") return cast(*in[0], attr_int(node, "to", 0));
    if (node.op == "Transpose") return transpose(*in[0], attr_ints(node, "perm").value_or(Ints{1, 0}));
    if (node.op == "Sqrt" && in[0]->kind == OnnxTensor::Kind::float32) {
        OnnxTensor out = *in[0];
        for (float& v : out.floats) v = std::sqrt(v);
        return out;
    }
    if ((node.op == "Add" || node.op == "Sub" || node.op == "Mul" || node.op == "Div") && in.size() == 2) return arithmetic(node.op, *in[0], *in[1]);
    if (in[0]->kind != OnnxTensor::Kind::int64 || in[0]->dims.size() > 1) return std::nullopt;
    const Ints& values = in[0]->integers;   // shapes: lists of whole numbers
    if (node.op == "Unsqueeze" && in[0]->dims.empty()) return of_integers(values);
    if (node.op == "Squeeze" && values.size() == 1) return of_integers(values, true);
    if (node.op == "Concat") {
        Ints all;
        for (const OnnxTensor* t : in) {
            if (t->kind != OnnxTensor::Kind::int64) return std::nullopt;
            all.insert(all.end(), t->integers.begin(), t->integers.end());
        }
        return of_integers(all);
    }
    if (node.op == "Gather" && in.size() == 2 && in[1]->kind == OnnxTensor::Kind::int64 && in[1]->dims.size() <= 1 && in[0]->dims.size() == 1) {
        Ints picked;
        for (std::int64_t i : in[1]->integers) {
            if (i < 0) i += static_cast<std::int64_t>(values.size());
            if (i < 0 || i >= static_cast<std::int64_t>(values.size())) return std::nullopt;
            picked.push_back(values[static_cast<std::size_t>(i)]);
        }
        return of_integers(picked, in[1]->dims.empty());
    }
    if (node.op == "Slice" && in.size() >= 3 && in[0]->dims.size() == 1 && in[1]->integers.size() == 1 && in[2]->integers.size() == 1 && (in.size() < 5 || in[4]->integers == Ints{1})) {
        auto place = [&](std::int64_t i) { return std::clamp<std::int64_t>(i < 0 ? i + static_cast<std::int64_t>(values.size()) : i, 0, static_cast<std::int64_t>(values.size())); };
        std::int64_t from = place(in[1]->integers[0]), to = place(in[2]->integers[0]);
        return of_integers(from < to ? Ints(values.begin() + from, values.begin() + to) : Ints{});
    }
    return std::nullopt;
}

std::int64_t attr_int(const OnnxNode& node, const std::string& name, std::int64_t absent) {
    auto found = node.attrs.find(name);
    const auto* value = found == node.attrs.end() ? nullptr : std::get_if<std::int64_t>(&found->second);
    return value ? *value : absent;
}

double attr_float(const OnnxNode& node, const std::string& name, double absent) {
    auto found = node.attrs.find(name);
    const auto* value = found == node.attrs.end() ? nullptr : std::get_if<float>(&found->second);
    return value ? shortest_double(*value) : absent;
}

std::string attr_text(const OnnxNode& node, const std::string& name, const std::string& absent) {
    auto found = node.attrs.find(name);
    const auto* value = found == node.attrs.end() ? nullptr : std::get_if<std::string>(&found->second);
    return value ? *value : absent;
}

std::optional<Ints> attr_ints(const OnnxNode& node, const std::string& name) {
    auto found = node.attrs.find(name);
    const auto* value = found == node.attrs.end() ? nullptr : std::get_if<Ints>(&found->second);
    return value ? std::optional(*value) : std::nullopt;
}

}  // namespace loopegg
