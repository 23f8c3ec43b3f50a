#include "graph/onnx/evaluate/tensors.hpp"

#include <algorithm>
#include <limits>

#include "graph/onnx/evaluate/budget.hpp"

namespace loopegg::onnx_eval {

namespace {

constexpr std::int64_t unlimited = -1;
thread_local std::int64_t elements_left = unlimited, elements_granted = 0;

// Called before the elements are there.
void take_from_budget(std::int64_t elements) {
    if (elements_left == unlimited) return;
    if (elements > elements_left)
        problem("it would make " + std::to_string(elements) + " elements, and " + std::to_string(elements_granted - elements_left) + " of " +
                std::to_string(elements_granted) + " that a file of this size may have computed are made already");
    elements_left -= elements;
}

}  // namespace
}  // namespace loopegg::onnx_eval

namespace loopegg {

ElementBudget::ElementBudget(std::int64_t elements) : outer_left_(onnx_eval::elements_left), outer_granted_(onnx_eval::elements_granted) {
    onnx_eval::elements_left = onnx_eval::elements_granted = elements;
}
ElementBudget::~ElementBudget() { onnx_eval::elements_left = outer_left_, onnx_eval::elements_granted = outer_granted_; }

}  // namespace loopegg

namespace loopegg::onnx_eval {

std::int64_t count_of(const Ints& dims) {
    std::int64_t count = 1;
    for (std::int64_t d : dims)
        if (d < 0 || __builtin_mul_overflow(count, d, &count) || count > max_elements) problem("a tensor of more than 2^28 elements, or of a negative size");
    return count;
}

void expect_work(double multiplications) {
    if (multiplications > 0x1p34) problem("more than 2^34 multiplications in one operator");
}

Kind kind_of(int type) {
    switch (type) {
        case float32:
        case float16:
        case bfloat16: return Kind::float32;
        case float64: return Kind::float64;
        case uint8:
        case int8:
        case uint16:
        case int16:
        case int32:
        case int64:
        case boolean:
        case uint32:
        case uint64: return Kind::int64;
        default: return Kind::other;
    }
}

OnnxTensor make(int type, Ints dims) {
    OnnxTensor t;
    t.kind = kind_of(type), t.type = type;
    const std::size_t n = at(count_of(dims));
    take_from_budget(static_cast<std::int64_t>(n));
    t.dims = std::move(dims);
    if (t.kind == Kind::float32)
        t.floats.resize(n);
    else if (t.kind == Kind::float64)
        t.doubles.resize(n);
    else if (t.kind == Kind::int64)
        t.integers.resize(n);
    else
        problem("a tensor that does not hold numbers");
    return t;
}

OnnxTensor of_ints(Ints values) {
    OnnxTensor t = make(int64, {static_cast<std::int64_t>(values.size())});
    t.integers = std::move(values);
    return t;
}

std::size_t size_of(const OnnxTensor& t) { return t.floats.size() + t.doubles.size() + t.integers.size(); }

double number(const OnnxTensor& t, std::size_t i) {
    return t.kind == Kind::float32 ? double{t.floats.at(i)} : t.kind == Kind::float64 ? t.doubles.at(i) : static_cast<double>(t.integers.at(i));
}

// Toward zero, and wrapped to the type's bits as C does; what no type can hold becomes its least value, as processors answer.
namespace {
std::int64_t wrapped(std::int64_t v, int type) {
    switch (type) {
        case uint8: return static_cast<std::uint8_t>(v);
        case int8: return static_cast<std::int8_t>(v);
        case uint16: return static_cast<std::uint16_t>(v);
        case int16: return static_cast<std::int16_t>(v);
        case int32: return static_cast<std::int32_t>(v);
        case uint32: return static_cast<std::uint32_t>(v);
        case boolean: return v != 0;
        default: return v;
    }
}
std::int64_t truncated(double v) {
    if (!(v > -9.2233720368547758e18 && v < 9.2233720368547758e18)) return std::numeric_limits<std::int64_t>::min();
    return static_cast<std::int64_t>(v);
}
}  // namespace

std::int64_t whole(const OnnxTensor& t, std::size_t i) { return t.kind == Kind::int64 ? t.integers.at(i) : truncated(number(t, i)); }

void set(OnnxTensor& t, std::size_t i, double value) {
    if (t.kind == Kind::float32)
        t.floats.at(i) = static_cast<float>(value);
    else if (t.kind == Kind::float64)
        t.doubles.at(i) = value;
    else
        t.integers.at(i) = t.type == boolean ? value != 0 : wrapped(truncated(value), t.type);
}

void copy_element(OnnxTensor& to, std::size_t i, const OnnxTensor& from, std::size_t j) {
    if (to.kind == Kind::float32)
        to.floats.at(i) = from.floats.at(j);
    else if (to.kind == Kind::float64)
        to.doubles.at(i) = from.doubles.at(j);
    else
        to.integers.at(i) = from.integers.at(j);
}

OnnxTensor cast(const OnnxTensor& t, int type) {
    OnnxTensor out = make(type, t.dims);
    for (std::size_t i = 0, n = size_of(t); i < n; ++i) {
        if (out.kind == Kind::int64 && t.kind == Kind::int64)
            out.integers[i] = wrapped(t.integers[i], type);
        else
            set(out, i, number(t, i));
    }
    return out;
}

const OnnxTensor* maybe(Inputs in, std::size_t i) { return i < in.size() ? in[i] : nullptr; }

const OnnxTensor& need(Inputs in, std::size_t i) {
    const OnnxTensor* t = maybe(in, i);
    if (!t) problem("its input " + std::to_string(i) + " is missing");
    if (t->kind == Kind::other) problem("its input " + std::to_string(i) + " does not hold numbers");
    return *t;
}

Ints list_of(const OnnxTensor& t) {
    Ints all;
    if (t.kind != Kind::int64) problem("whole numbers are expected");
    return t.integers;
}

std::int64_t rank_of(const OnnxTensor& t) { return static_cast<std::int64_t>(t.dims.size()); }

std::int64_t placed_axis(std::int64_t axis, std::int64_t rank) {
    if (axis < -rank || axis >= rank) problem("axis " + std::to_string(axis) + " of a tensor with " + std::to_string(rank) + " dimensions");
    return axis < 0 ? axis + rank : axis;
}

std::vector<std::int64_t> axes_of(const OnnxNode& node, Inputs in, std::size_t input) {
    if (const OnnxTensor* t = maybe(in, input)) return list_of(*t);
    return attr_ints(node, "axes").value_or(Ints{});
}

Ints strides_of(const Ints& dims) {
    Ints strides(dims.size(), 1);
    for (std::size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
    return strides;
}

Ints broadcast(const Ints& a, const Ints& b) {
    Ints out(std::max(a.size(), b.size()), 1);
    for (std::size_t i = 0; i < out.size(); ++i) {
        std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
        if (x != y && x != 1 && y != 1) problem("dimensions of " + std::to_string(x) + " and " + std::to_string(y) + " do not match");
        out[out.size() - 1 - i] = x == 1 ? y : x;
    }
    return out;
}

Ints broadcast_strides(const Ints& dims, const Ints& result) {
    Ints strides(result.size(), 0);
    std::int64_t stride = 1;
    for (std::size_t i = dims.size(); i-- > 0;) {
        strides[i + result.size() - dims.size()] = dims[i] == 1 ? 0 : stride;
        stride *= dims[i];
    }
    return strides;
}

void each(const Ints& dims, const std::vector<Ints>& strides, const std::function<void(std::size_t, const Ints&)>& visit) {
    Ints index(dims.size(), 0), offsets(strides.size(), 0);
    for (std::int64_t flat = 0, count = count_of(dims); flat < count; ++flat) {
        visit(at(flat), offsets);
        for (std::size_t d = dims.size(); d-- > 0;) {
            const bool wraps = ++index[d] == dims[d];
            for (std::size_t t = 0; t < strides.size(); ++t) offsets[t] += wraps ? -strides[t][d] * (dims[d] - 1) : strides[t][d];
            if (!wraps) break;
            index[d] = 0;
        }
    }
}

OnnxTensor picked(const OnnxTensor& from, Ints dims, const std::function<std::int64_t(std::size_t)>& place) {
    OnnxTensor out = make(element_type(from), std::move(dims));
    const std::size_t have = size_of(from);
    for (std::size_t i = 0, n = size_of(out); i < n; ++i) {
        const std::int64_t p = place(i);
        if (p < 0 || at(p) >= have) problem("an index out of range");
        copy_element(out, i, from, at(p));
    }
    return out;
}

OnnxTensor reshaped(OnnxTensor t, Ints dims) {
    if (count_of(dims) != static_cast<std::int64_t>(size_of(t))) problem("a shape of another size");
    t.dims = std::move(dims);
    return t;
}

}  // namespace loopegg::onnx_eval
