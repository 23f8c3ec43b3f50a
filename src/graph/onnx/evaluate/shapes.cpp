// Operators about shapes, and those that make tensors out of nothing.
#include <algorithm>
#include <map>
#include <set>

#include "graph/onnx/evaluate/tensors.hpp"

namespace loopegg::onnx_eval {
namespace {

Outputs constant(const OnnxNode& node, Inputs, std::int64_t) {
    if (const OnnxTensor* t = attr_tensor(node, "value")) return {*t};
    auto floats = [](std::vector<float> values, Ints dims) {
        OnnxTensor t = make(float32, std::move(dims));
        t.floats = std::move(values);
        return t;
    };
    if (auto f = node.attrs.find("value_float"); f != node.attrs.end() && std::holds_alternative<float>(f->second))
        return {floats({std::get<float>(f->second)}, {})};
    if (auto f = attr_floats(node, "value_floats")) return {floats(*f, {static_cast<std::int64_t>(f->size())})};
    if (node.attrs.contains("value_int")) return {reshaped(of_ints({attr_int(node, "value_int", 0)}), {})};
    if (auto i = attr_ints(node, "value_ints")) return {of_ints(*i)};
    problem("a constant that is not supported");
}

Outputs shape(const OnnxNode& node, Inputs in, std::int64_t) {
    const Ints& dims = need(in, 0).dims;
    const auto rank = static_cast<std::int64_t>(dims.size());
    auto place = [&](std::int64_t i) { return std::clamp<std::int64_t>(i < 0 ? i + rank : i, 0, rank); };
    const std::int64_t from = place(attr_int(node, "start", 0)), to = place(attr_int(node, "end", rank));
    return {of_ints(from < to ? Ints(dims.begin() + from, dims.begin() + to) : Ints{})};
}

Outputs size(const OnnxNode&, Inputs in, std::int64_t) { return {reshaped(of_ints({count_of(need(in, 0).dims)}), {})}; }

Outputs constant_of_shape(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor* value = attr_tensor(node, "value");
    if (value && size_of(*value) != 1) problem("its value is not one number");
    OnnxTensor y = make(value ? element_type(*value) : int{float32}, list_of(need(in, 0)));
    for (std::size_t i = 0, n = size_of(y); value && i < n; ++i) copy_element(y, i, *value, 0);
    return {y};
}

Outputs range(const OnnxNode&, Inputs in, std::int64_t) {
    const OnnxTensor &from = need(in, 0), &to = need(in, 1), &by = need(in, 2);
    if (size_of(from) != 1 || size_of(to) != 1 || size_of(by) != 1 || number(by, 0) == 0) problem("three numbers and a step are expected");
    const double count = std::max(0.0, std::ceil((number(to, 0) - number(from, 0)) / number(by, 0)));
    if (!(count <= static_cast<double>(max_elements))) problem("a range of too many numbers");
    OnnxTensor y = make(element_type(from), {static_cast<std::int64_t>(count)});
    for (std::size_t i = 0, n = size_of(y); i < n; ++i) {
        if (y.kind == Kind::int64)
            y.integers[i] = from.integers[0] + static_cast<std::int64_t>(i) * by.integers.at(0);
        else
            set(y, i, number(from, 0) + static_cast<double>(i) * number(by, 0));
    }
    return {y};
}

Outputs reshape(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor& x = need(in, 0);
    Ints dims = in.size() > 1 ? list_of(need(in, 1)) : attr_ints(node, "shape").value_or(Ints{});
    const bool keep_zero = attr_int(node, "allowzero", 0) != 0;
    std::int64_t known = 1;
    std::size_t open = dims.size();
    for (std::size_t i = 0; i < dims.size(); ++i) {
        if (dims[i] == 0 && !keep_zero) {
            if (i >= x.dims.size()) problem("a dimension that its input has not");
            dims[i] = x.dims[i];
        }
        if (dims[i] == -1 && open == dims.size())
            open = i;
        else if (dims[i] < 0 || __builtin_mul_overflow(known, dims[i], &known))
            problem("a shape that is not possible");
    }
    const auto total = static_cast<std::int64_t>(size_of(x));
    if (open != dims.size()) {
        if (known == 0 || total % known) problem("a shape of another size");
        dims[open] = total / known;
    }
    return {reshaped(x, dims)};
}

Outputs flatten(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor& x = need(in, 0);
    std::int64_t axis = attr_int(node, "axis", 1), rank = rank_of(x);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis > rank) problem("its axis is out of range");
    const std::int64_t outer = count_of(Ints(x.dims.begin(), x.dims.begin() + axis));
    return {reshaped(x, {outer, count_of(Ints(x.dims.begin() + axis, x.dims.end()))})};
}

Outputs squeeze(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor& x = need(in, 0);
    const bool wider = node.op == "Unsqueeze";
    const Ints axes = axes_of(node, in, 1);
    const std::int64_t rank = rank_of(x) + (wider ? static_cast<std::int64_t>(axes.size()) : 0);
    std::set<std::int64_t> places;
    for (std::int64_t a : axes)
        if (!places.insert(placed_axis(a, rank)).second && wider) problem("an axis twice");
    Ints dims;
    std::size_t next = 0;
    for (std::int64_t i = 0; i < rank; ++i) {
        if (wider)
            dims.push_back(places.contains(i) ? 1 : x.dims[next++]);
        else if (!places.contains(i) && !(axes.empty() && x.dims[at(i)] == 1))
            dims.push_back(x.dims[at(i)]);
        else if (x.dims[at(i)] != 1)
            problem("a dimension of more than 1 cannot go");
    }
    return {reshaped(x, dims)};
}

Outputs eye_like(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor& x = need(in, 0);
    if (x.dims.size() != 2) problem("a matrix is expected");
    OnnxTensor y = make(static_cast<int>(attr_int(node, "dtype", element_type(x))), x.dims);
    const std::int64_t k = attr_int(node, "k", 0);
    for (std::int64_t r = 0; r < x.dims[0]; ++r)
        if (k > -max_elements && k < max_elements && r + k >= 0 && r + k < x.dims[1]) set(y, at(r * x.dims[1] + r + k), 1);
    return {y};
}

Outputs one_hot(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor &index = need(in, 0), &depth = need(in, 1), &values = need(in, 2);
    if (size_of(depth) != 1 || size_of(values) != 2) problem("a depth and two values are expected");
    const std::int64_t n = whole(depth, 0), axis = placed_axis(attr_int(node, "axis", -1), rank_of(index) + 1);
    Ints dims = index.dims;
    dims.insert(dims.begin() + axis, n);
    OnnxTensor y = make(element_type(values), dims);
    std::int64_t inner = 1;
    for (std::int64_t d = axis + 1; d <= rank_of(index); ++d) inner *= dims[at(d)];
    for (std::size_t i = 0, all = size_of(y); i < all; ++i) {
        const auto flat = static_cast<std::int64_t>(i);
        std::int64_t hot = whole(index, at(flat / (inner * n) * inner + flat % inner));
        if (hot < 0) hot += n;
        copy_element(y, i, values, flat / inner % n == hot);
    }
    return {y};
}

}  // namespace

Operation shape_operation(const std::string& op) {
    static const std::map<std::string, Operation> all{
        {"Constant", constant}, {"Shape", shape},      {"Size", size},       {"ConstantOfShape", constant_of_shape},
        {"Range", range},       {"Reshape", reshape},  {"Flatten", flatten}, {"Squeeze", squeeze},
        {"Unsqueeze", squeeze}, {"EyeLike", eye_like}, {"OneHot", one_hot},
    };
    auto found = all.find(op);
    return found == all.end() ? nullptr : found->second;
}

}  // namespace loopegg::onnx_eval
