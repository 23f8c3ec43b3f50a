// Products with weights, windows over images, norms and reductions.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "graph/onnx/element_types.hpp"
#include "graph/onnx/importer.hpp"
#include "graph/place.hpp"

namespace loopegg {
namespace {}  // namespace

OnnxImporter::Pads OnnxImporter::pads_of(const OnnxNode& node, const Shape& in, const Ints& kernel) const {
    const std::size_t n = kernel.size();
    const Ints strides = attr_ints(node, "strides").value_or(Ints(n, 1)), dilations = attr_ints(node, "dilations").value_or(Ints(n, 1)),
               pads = attr_ints(node, "pads").value_or(Ints(2 * n, 0));
    const std::string automatic = attr_text(node, "auto_pad", "NOTSET");
    if (strides.size() != n || dilations.size() != n || pads.size() != 2 * n || in.size() != n + 2)
        fail(node, "its window, strides, dilations and pads do not fit to its input");
    Pads p;
    for (std::size_t d = 0; d < n; ++d) {
        if (strides[d] < 1 || dilations[d] < 1 || kernel[d] < 1 || strides[d] > 1 << 20 || dilations[d] > 1 << 20 || kernel[d] > 1 << 20)
            fail(node, "its window, strides or dilations are not possible");
        if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
            const std::int64_t out = (in[d + 2] + strides[d] - 1) / strides[d],
                               all = std::max<std::int64_t>(0, (out - 1) * strides[d] + (kernel[d] - 1) * dilations[d] + 1 - in[d + 2]);
            p.before.push_back(automatic == "SAME_UPPER" ? all / 2 : all - all / 2), p.after.push_back(all - p.before.back());
        } else if (automatic == "NOTSET" || automatic == "VALID") {
            p.before.push_back(automatic == "VALID" ? 0 : pads[d]), p.after.push_back(automatic == "VALID" ? 0 : pads[n + d]);
        } else {
            fail(node, fmt::format("auto_pad '{}' is not known", automatic));
        }
        if (p.before[d] < 0 || p.after[d] < 0) fail(node, "negative padding is not supported");
    }
    return p;
}

bool OnnxImporter::conv(const OnnxNode& node) {
    const OnnxTensor *w = constant(node, 1), *bias = has(node, 2) ? constant(node, 2) : nullptr;
    const std::size_t n = w ? w->dims.size() : 0;
    if (!computes_floats(node) || (has(node, 2) && !bias)) return false;
    if (n == 5) return flat_conv(node, *w, bias);
    if (n != 3 && n != 4) return false;
    std::string x = value(input(node, 0)), name = name_for(node, tail(node));
    if (shape(x).size() != n) fail(node, fmt::format("a weight of {} dimensions on an input of {}", n, rank(x)));
    // A line is an image of one row.
    auto wide = [&](Ints v, std::int64_t first) {
        if (n == 3) v.insert(v.begin(), first);
        return v;
    };
    const Ints kernel(w->dims.begin() + 2, w->dims.end());
    Pads p = pads_of(node, shape(x), kernel);
    const Ints strides = wide(attr_ints(node, "strides").value_or(Ints(n - 2, 1)), 1),
               dilations = wide(attr_ints(node, "dilations").value_or(Ints(n - 2, 1)), 1);
    p.before = wide(p.before, 0), p.after = wide(p.after, 0);
    Shape weight{w->dims[0], w->dims[1]};
    for (std::int64_t k : wide(kernel, 1)) weight.push_back(k);
    if (n == 3) x = put(name, "image", "reshape", {x}, {{"shape", Ints{0, 0, 1, shape(x)[2]}}});
    if (p.before != p.after) {
        x = put(name, "pad", "pad", {x}, {{"before", Ints{0, 0, p.before[0], p.before[1]}}, {"after", Ints{0, 0, p.after[0], p.after[1]}}});
        p.before = {0, 0};
    }
    set_weight(name + ".weight", *w, weight);
    if (bias) set_weight(name + ".bias", *bias);
    std::string y = put(Node{name,
                             "conv2d",
                             {x},
                             {{"out_channels", w->dims[0]},
                              {"kernel", Ints{weight[2], weight[3]}},
                              {"stride", strides},
                              {"padding", p.before},
                              {"dilation", dilations},
                              {"groups", attr_int(node, "group", 1)},
                              {"bias", bias != nullptr}}});
    note_int8(name, node, 0);
    if (n == 3) y = put(name, "line", "reshape", {y}, {{"shape", Ints{0, 0, shape(y)[3]}}});
    result(node, y);
    return true;
}

// A volume along which the window does not reach is a batch of images.
bool OnnxImporter::flat_conv(const OnnxNode& node, const OnnxTensor& w, const OnnxTensor* bias) {
    std::string x = value(input(node, 0));
    if (rank(x) != 5) return false;
    const Ints kernel(w.dims.begin() + 2, w.dims.end()), strides = attr_ints(node, "strides").value_or(Ints(3, 1)),
                                                         dilations = attr_ints(node, "dilations").value_or(Ints(3, 1));
    const Pads p = pads_of(node, shape(x), kernel);
    std::size_t flat = 3;
    for (std::size_t d = 0; d < 3; ++d)
        if (kernel[d] == 1 && strides[d] == 1 && p.before[d] == 0 && p.after[d] == 0) flat = d;
    if (flat == 3) return false;
    const std::size_t a = flat == 0 ? 1 : 0, b = flat == 2 ? 1 : 2;
    const std::int64_t at_flat = static_cast<std::int64_t>(flat) + 2, at_a = static_cast<std::int64_t>(a) + 2, at_b = static_cast<std::int64_t>(b) + 2;
    const std::string name = name_for(node, tail(node));
    const Shape whole = shape(x);
    std::string y = put_transpose(name, "slices", x, {0, at_flat, 1, at_a, at_b});
    y = put(name, "images", "reshape", {y}, {{"shape", Ints{-1, whole[1], whole[at(at_a)], whole[at(at_b)]}}});
    Ints padding{p.before[a], p.before[b]};
    if (p.before != p.after) {
        y = put(name, "pad", "pad", {y}, {{"before", Ints{0, 0, p.before[a], p.before[b]}}, {"after", Ints{0, 0, p.after[a], p.after[b]}}});
        padding = {0, 0};
    }
    set_weight(name + ".weight", w, {w.dims[0], w.dims[1], kernel[a], kernel[b]});
    if (bias) set_weight(name + ".bias", *bias);
    y = put(Node{name,
                 "conv2d",
                 {y},
                 {{"out_channels", w.dims[0]},
                  {"kernel", Ints{kernel[a], kernel[b]}},
                  {"stride", Ints{strides[a], strides[b]}},
                  {"padding", padding},
                  {"dilation", Ints{dilations[a], dilations[b]}},
                  {"groups", attr_int(node, "group", 1)},
                  {"bias", bias != nullptr}}});
    y = put(name, "apart", "reshape", {y}, {{"shape", Ints{-1, whole[at(at_flat)], shape(y)[1], shape(y)[2], shape(y)[3]}}});
    Ints order{0, 2, 3, 3, 3};
    order[at(at_flat)] = 1, order[at(at_a)] = 3, order[at(at_b)] = 4;
    result(node, put_transpose(name, "volume", y, order));
    return true;
}

// x times a constant matrix [in, out], or [out, in] when it is given that way round.
bool OnnxImporter::put_linear(const OnnxNode& node, const OnnxTensor& w, bool out_first, const OnnxTensor* bias, double alpha) {
    if (w.dims.size() != 2) fail(node, "its weight must be a matrix");
    std::string x = value(input(node, 0)), name = name_for(node, tail(node));
    std::int64_t rows = w.dims[0], columns = w.dims[1];
    set_weight(name + ".weight", w, out_first ? Shape{rows, columns} : Shape{columns, rows});
    Tensor& weight = weights_[name + ".weight"];
    if (!out_first) {
        std::vector<float> given = weight.values;
        for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j < columns; ++j) weight.values[at(j * rows + i)] = given[at(i * columns + j)];
    }
    for (float& v : weight.values) v = static_cast<float>(v * alpha);
    if (bias) set_weight(name + ".bias", *bias, {weight.shape[0]});
    result(node, put(Node{name, "linear", {x}, {{"out_features", weight.shape[0]}, {"bias", bias != nullptr}}}));
    if (alpha == 1) note_int8(name, node, out_first ? 0 : 1);
    return true;
}

bool OnnxImporter::gemm(const OnnxNode& node) {
    const OnnxTensor *w = constant(node, 1), *c = has(node, 2) ? constant(node, 2) : nullptr;
    const double alpha = attr_float(node, "alpha", 1), beta = attr_float(node, "beta", 1);
    if (!computes_floats(node) || attr_int(node, "transA", 0) != 0 || constant(node, 0)) return false;
    if (!w || w->dims.size() != 2 || (has(node, 2) && !c)) return false;
    const bool out_first = attr_int(node, "transB", 0) != 0;
    const std::int64_t out = w->dims[out_first ? 0 : 1];
    if (!c) return put_linear(node, *w, out_first, nullptr, alpha);
    // One number for each column, however its dimensions are written; a number alone is for all.
    OnnxTensor bias = *c;
    bias.floats = floats_of(*c), bias.doubles.clear(), bias.integers.clear();
    const bool row = c->dims.size() <= 2 && (c->dims.size() < 2 || c->dims[0] == 1) && (bias.floats.size() == 1 || (!c->dims.empty() && c->dims.back() == out));
    if (!row || bias.floats.empty()) return false;
    if (bias.floats.size() == 1) bias.floats.assign(at(out), bias.floats[0]);
    for (float& v : bias.floats) v = static_cast<float>(v * beta);
    return put_linear(node, *w, out_first, &bias, alpha);
}

bool OnnxImporter::linear(const OnnxNode& node) { return put_linear(node, needed(node, 1, "weight"), false, &needed(node, 2, "bias")); }

bool OnnxImporter::matmul(const OnnxNode& node) {
    if (!computes_floats(node)) return false;
    if (const OnnxTensor* w = constant(node, 1); w && w->dims.size() == 2 && !constant(node, 0) && !shape(value(input(node, 0))).empty())
        return put_linear(node, *w, false, nullptr);
    std::string a = value(input(node, 0)), b = value(input(node, 1));
    if (rank(a) < 2 || rank(b) < 2) return false;
    // Leading dimensions of 1, or that one side lacks, are stretched: our matmul wants both alike.
    const std::string name = name_for(node);
    Shape lead(at(std::max(rank(a), rank(b)) - 2), 1);
    for (const std::string& v : {a, b})
        for (std::int64_t d = 0; d < rank(v) - 2; ++d) {
            std::int64_t& to = lead[lead.size() - at(rank(v) - 2) + at(d)];
            if (shape(v)[at(d)] != to && to != 1 && shape(v)[at(d)] != 1)
                fail(node, fmt::format("the leading dimensions of {} and {} do not match", to_string(shape(a)), to_string(shape(b))));
            to = std::max(to, shape(v)[at(d)]);
        }
    for (std::string* v : {&a, &b}) {
        Shape wanted = lead;
        wanted.push_back(shape(*v)[at(rank(*v) - 2)]), wanted.push_back(shape(*v).back());
        if (shape(*v) == wanted) continue;
        Shape stretched(wanted.size(), 0);  // 0 keeps what is there
        for (std::size_t d = 0; d < wanted.size(); ++d)
            if (const std::int64_t own = static_cast<std::int64_t>(d) - (static_cast<std::int64_t>(wanted.size()) - rank(*v));
                own < 0 || shape(*v)[at(own)] != wanted[d])
                stretched[d] = wanted[d];
        *v = put(name, v == &a ? "left" : "right", "expand", {*v}, {{"shape", stretched}});
    }
    result(node, put(Node{name, "matmul", {a, b}}));
    return true;
}

// Two operands without sums on one side alone are a product of matrices: letters of both that stay are its batch, those that go are summed over.
bool OnnxImporter::einsum(const OnnxNode& node) {
    std::string words = attr_text(node, "equation", "");
    words.erase(std::remove(words.begin(), words.end(), ' '), words.end());
    const std::size_t comma = words.find(','), arrow = words.find("->");
    if (!computes_floats(node) || node.inputs.size() != 2 || comma == std::string::npos || arrow == std::string::npos || comma > arrow) return false;
    const std::string left = words.substr(0, comma), right = words.substr(comma + 1, arrow - comma - 1), out = words.substr(arrow + 2);
    for (const std::string& term : {left, right, out})
        if (term.find_first_of(".,") != std::string::npos || std::set<char>(term.begin(), term.end()).size() != term.size()) return false;
    std::string a = value(input(node, 0)), b = value(input(node, 1));
    if (rank(a) != static_cast<std::int64_t>(left.size()) || rank(b) != static_cast<std::int64_t>(right.size()))
        fail(node, "its equation has other dimensions than its inputs");
    auto in = [](const std::string& term, char c) { return term.find(c) != std::string::npos; };
    std::map<char, std::int64_t> size;
    for (std::size_t i = 0; i < left.size(); ++i) size[left[i]] = shape(a)[i];
    for (std::size_t i = 0; i < right.size(); ++i) {
        if (in(left, right[i]) && size[right[i]] != shape(b)[i]) fail(node, fmt::format("its inputs differ in the dimension '{}'", right[i]));
        size[right[i]] = shape(b)[i];
    }
    std::string batch, rows, columns, summed;
    for (char c : left) {
        if (!in(right, c) && !in(out, c)) return false;
        (!in(right, c) ? rows : in(out, c) ? batch : summed) += c;
    }
    for (char c : right) {
        if (!in(left, c) && !in(out, c)) return false;
        if (!in(left, c)) columns += c;
    }
    if (out.size() != batch.size() + rows.size() + columns.size() || summed.empty()) return false;
    const std::string name = name_for(node);
    auto product = [&](const std::string& letters) {
        std::int64_t n = 1;
        for (char c : letters) n *= size.at(c);
        return n;
    };
    auto arranged = [&](std::string x, const std::string& from, const std::string& to, const char* what) {
        Ints order;
        for (char c : to) order.push_back(static_cast<std::int64_t>(from.find(c)));
        return std::is_sorted(order.begin(), order.end()) ? x : put_transpose(name, what, x, order);
    };
    a = put(name, "left", "reshape", {arranged(a, left, batch + rows + summed, "left_order")}, {{"shape", Ints{product(batch), -1, product(summed)}}});
    b = put(name, "right", "reshape", {arranged(b, right, batch + summed + columns, "right_order")}, {{"shape", Ints{product(batch), product(summed), -1}}});
    std::string y = put(Node{name, "matmul", {a, b}});
    const std::string made = batch + rows + columns;
    Ints wanted;
    for (char c : made) wanted.push_back(c == left[0] ? -1 : size.at(c));  // the first dimension may be the network's batch
    y = put(name, "apart", "reshape", {y}, {{"shape", wanted}});
    result(node, arranged(y, made, out, "order"));
    return true;
}

bool OnnxImporter::pool(const OnnxNode& node) {
    if (!computes_floats(node) || used(node, 1)) return false;
    const Ints kernel = attr_ints(node, "kernel_shape").value_or(Ints{});
    std::string x = value(input(node, 0));
    if (rank(x) != 4 || kernel.size() != 2) return false;
    for (std::int64_t d : attr_ints(node, "dilations").value_or(Ints{}))
        if (d != 1) return false;
    const Ints stride = attr_ints(node, "strides").value_or(Ints{1, 1});
    Pads p = pads_of(node, shape(x), kernel);
    const bool even = p.before == p.after, none = p.before == Ints{0, 0} && p.after == Ints{0, 0}, average = node.op == "AveragePool";
    bool further = false;
    if (attr_int(node, "ceil_mode", 0) != 0)
        for (std::size_t d = 0; d < 2; ++d) {  // as if there were more padding at the end
            const std::int64_t room = shape(x)[d + 2] + p.before[d] + p.after[d] - kernel[d], rest = room < 0 ? 0 : room % stride[d];
            if (rest == 0 || (room / stride[d] + 1) * stride[d] >= shape(x)[d + 2] + p.before[d]) continue;
            p.after[d] += stride[d] - rest, further = true;
        }
    const bool counted = attr_int(node, "count_include_pad", 0) != 0;
    for (std::size_t d = 0; d < 2; ++d)
        if (2 * p.before[d] > kernel[d]) return false;
    // What the last windows see beyond the padding is not counted; with padding that is counted, that is a mixture we have no operator for.
    if (average && further && counted && !none) return false;
    if (average && counted && !none && !even && !further) return false;
    Attrs attrs{{"kernel", kernel}, {"stride", stride}, {"padding", p.before}};
    if (p.after != p.before) attrs["padding_end"] = p.after;
    if (average) attrs["count_padding"] = further ? false : counted || (ours_ ? false : none);
    put(node, average ? "avg_pool" : "max_pool", {x}, std::move(attrs));
    return true;
}

bool OnnxImporter::global_pool(const OnnxNode& node) {
    if (!computes_floats(node)) return false;
    std::string x = value(input(node, 0));
    if (rank(x) < 3) return false;
    if (node.op == "GlobalAveragePool" && rank(x) == 4) {
        put(node, "global_avg_pool", {x});
        return true;
    }
    Ints axes(at(rank(x) - 2));
    std::iota(axes.begin(), axes.end(), 2);
    put(node, node.op == "GlobalMaxPool" ? "reduce_max" : "reduce_mean", {x}, {{"axes", axes}});
    return true;
}

bool OnnxImporter::batch_norm(const OnnxNode& node) {
    if (attr_int(node, "training_mode", 0) != 0 || used(node, 1)) fail(node, "the model was exported for training; export it for inference");
    for (std::size_t i = 1; i < 5; ++i)
        if (!constant(node, i)) return false;
    if (!computes_floats(node)) return false;
    std::string x = value(input(node, 0)), name = name_for(node, tail(node));
    const char* names[] = {".weight", ".bias", ".running_mean", ".running_var"};
    for (std::size_t i = 0; i < 4; ++i) set_weight(name + names[i], needed(node, i + 1, names[i] + 1));
    result(node, put(Node{name, "batch_norm", {x}, {{"eps", attr_float(node, "epsilon", 1e-5)}}}));
    return true;
}

bool OnnxImporter::layer_norm(const OnnxNode& node) {
    const OnnxTensor *scale = constant(node, 1), *bias = has(node, 2) ? constant(node, 2) : nullptr;
    if (!computes_floats(node) || !scale || (has(node, 2) && !bias) || used(node, 1) || used(node, 2)) return false;
    std::string x = value(input(node, 0));
    std::int64_t axis = attr_int(node, "axis", -1), dims = rank(x);
    if (axis < 0) axis += dims;
    if (axis < 0 || axis >= dims) fail(node, "its axis is out of range");
    const Shape tail_shape(shape(x).begin() + axis, shape(x).end()), whole = shape(x);
    if (scale->dims != tail_shape || (bias && bias->dims != tail_shape)) return false;
    const std::string name = name_for(node, tail(node));
    const std::int64_t width = element_count(tail_shape);
    if (axis != dims - 1) x = put(name, "flat", "flatten", {x}, {{"axis", axis}});
    set_weight(name + ".weight", *scale, {width});
    if (bias)
        set_weight(name + ".bias", *bias, {width});
    else
        weights_[name + ".bias"] = {{width}, std::vector<float>(at(width), 0.0f)};
    std::string y = put(Node{name, "layer_norm", {x}, {{"eps", attr_float(node, "epsilon", 1e-5)}}});
    if (axis != dims - 1) y = put(name, "back", "reshape", {y}, {{"shape", batch_free(y, whole)}});
    result(node, y);
    return true;
}

// Groups of channels are rows for a layer norm without weights; a scale for each channel comes after it.
bool OnnxImporter::group_norm(const OnnxNode& node) {
    const OnnxTensor *scale = constant(node, 1), *bias = constant(node, 2);
    if (!computes_floats(node) || !scale || !bias) return false;
    std::string x = value(input(node, 0));
    if (rank(x) < 3) return false;
    const std::int64_t channels = shape(x)[1], groups = node.op == "InstanceNormalization" ? channels : attr_int(node, "num_groups", 1);
    if (groups < 1 || channels % groups || scale->dims != Shape{channels} || bias->dims != Shape{channels}) return false;  // one scale for each group: opaque
    const std::string name = name_for(node, tail(node));
    const Shape whole = shape(x);
    const std::int64_t width = element_count(whole) / (whole[0] * groups);
    std::string y = put(name, "groups", "reshape", {x}, {{"shape", Ints{0, groups, width}}});
    const std::string rows = unique(name + ".rows");
    weights_[rows + ".weight"] = {{width}, std::vector<float>(at(width), 1.0f)};
    weights_[rows + ".bias"] = {{width}, std::vector<float>(at(width), 0.0f)};
    y = put(Node{rows, "layer_norm", {y}, {{"eps", attr_float(node, "epsilon", 1e-5)}}});
    y = put(name, "image", "reshape", {y}, {{"shape", batch_free(y, whole)}});
    set_weight(name + ".weight", *scale), set_weight(name + ".bias", *bias);
    weights_[name + ".running_mean"] = {{channels}, std::vector<float>(at(channels), 0.0f)};
    weights_[name + ".running_var"] = {{channels}, std::vector<float>(at(channels), 1.0f)};
    result(node, put(Node{name, "batch_norm", {y}, {{"eps", 0.0}}}));
    return true;
}

bool OnnxImporter::softmax(const OnnxNode& node) {
    if (!computes_floats(node)) return false;
    std::string x = value(input(node, 0));
    std::int64_t axis = attr_int(node, "axis", onnx_.opset < 13 ? 1 : -1);
    if (rank(x) == 0 || axis < -rank(x) || axis >= rank(x)) fail(node, "its axis is out of range");
    if (onnx_.opset >= 13 || axis == -1 || axis == rank(x) - 1) {
        put(node, "softmax", {x}, {{"axis", axis}});
        return true;
    }
    // Before opset 13 all dimensions from there on are one.
    if (axis < 0) axis += rank(x);
    const std::string name = name_for(node);
    const Shape whole = shape(x);
    std::string y = put(name, "flat", "flatten", {x}, {{"axis", axis}});
    y = put(Node{name, "softmax", {y}, {{"axis", std::int64_t{-1}}}});
    result(node, put(name, "back", "reshape", {y}, {{"shape", batch_free(y, whole)}}));
    return true;
}

bool OnnxImporter::reduce(const OnnxNode& node) {
    if (has(node, 1) && !constant(node, 1)) return false;
    if (type_of(input(node, 0)) != onnx_type::float32) return false;
    std::string x = value(input(node, 0));
    Ints axes = attr_ints(node, "axes").value_or(Ints{});
    if (has(node, 1)) axes = integers_of(needed(node, 1, "axes")).value_or(Ints{});
    if (axes.empty() && attr_int(node, "noop_with_empty_axes", 0) != 0) return false;
    if (axes.empty()) axes.resize(at(rank(x))), std::iota(axes.begin(), axes.end(), 0);
    for (std::int64_t& a : axes) {
        a += a < 0 ? rank(x) : 0;
        if (a < 0 || a >= rank(x)) fail(node, "an axis is out of range");
    }
    std::sort(axes.begin(), axes.end());
    axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
    if (axes.empty()) return false;  // of a number
    const bool keep = attr_int(node, "keepdims", 1) != 0;
    const std::string name = name_for(node);
    if (node.op == "ReduceMean" && axes == Ints{2, 3} && rank(x) == 4) {
        std::string pooled = put(Node{keep ? name : unique(name + ".pool"), "global_avg_pool", {x}});
        result(node, keep ? pooled : put(Node{name, "flatten", {pooled}}));
        return true;
    }
    const bool least = node.op == "ReduceMin", squares = node.op == "ReduceL2" || node.op == "ReduceSumSquare";
    if (least) x = put(name, "negative", "neg", {x});
    if (squares) x = put(name, "square", "mul", {x, x});
    Shape wanted;
    for (std::int64_t d = 0; d < rank(x); ++d) {
        const bool gone = std::count(axes.begin(), axes.end(), d) > 0;
        if (!gone || keep) wanted.push_back(gone ? 1 : shape(x)[at(d)]);
    }
    bool contiguous = axes.back() - axes.front() + 1 == static_cast<std::int64_t>(axes.size());
    if (!contiguous) {  // what goes comes last
        Ints order;
        for (std::int64_t d = 0; d < rank(x); ++d)
            if (!std::count(axes.begin(), axes.end(), d)) order.push_back(d);
        const std::size_t kept = order.size();
        order.insert(order.end(), axes.begin(), axes.end());
        x = put(name, "ordered", "transpose", {x}, {{"order", order}});
        for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<std::int64_t>(kept + i);
    }
    const std::string op = node.op == "ReduceMean" ? "reduce_mean" : node.op == "ReduceMax" || least ? "reduce_max" : "reduce_sum";
    const bool more = least || node.op == "ReduceL2" || (!contiguous && keep);
    std::string y = put(Node{more ? unique(name + ".reduced") : name, op, {x}, {{"axes", axes}, {"keepdims", contiguous ? keep : false}}});
    if (!contiguous && keep) y = put(Node{least || node.op == "ReduceL2" ? unique(name + ".kept") : name, "reshape", {y}, {{"shape", batch_free(y, wanted)}}});
    if (least) y = put(Node{name, "neg", {y}});
    if (node.op == "ReduceL2") y = put(Node{name, "sqrt", {y}});
    result(node, y);
    return true;
}

}  // namespace loopegg
