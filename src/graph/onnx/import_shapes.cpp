// Operators that move elements: reshapes, slices, and what can be said by them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "graph/onnx/evaluate/budget.hpp"
#include "graph/onnx/evaluate/evaluate.hpp"
#include "graph/onnx/importer.hpp"
#include "graph/onnx/onnx_model.hpp"
#include "graph/place.hpp"

namespace loopegg {
// A batch that is as a number would forbid other batch sizes.
OnnxImporter::Ints OnnxImporter::batch_free(const std::string& x, Ints wanted) const {
    if (ours_ || wanted.empty() || shape(x).empty()) return wanted;
    const std::int64_t batch = graph_.inputs.empty() || graph_.inputs[0].shape.empty() ? 0 : graph_.inputs[0].shape[0];
    const bool whole = !std::count(wanted.begin(), wanted.end(), -1);
    if (wanted[0] == shape(x)[0]) {
        wanted[0] = 0;
        const auto later = std::find(wanted.begin() + 1, wanted.end(), batch);  // steps come first, and the batch after them
        if (whole && batch != shape(x)[0] && later != wanted.end()) *later = -1;
    } else if (whole && wanted[0] == batch) {
        wanted[0] = -1;
    }
    return wanted;
}

bool OnnxImporter::put_reshape(const OnnxNode& node, const std::string& x, const Ints& wanted) {
    put(node, "reshape", {x}, {{"shape", batch_free(x, wanted)}});
    return true;
}

bool OnnxImporter::concat(const OnnxNode& node) {
    if (!computes_floats(node)) return false;
    std::vector<std::string> all;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) all.push_back(value(input(node, i)));
    put(node, "concat", all, {{"axis", attr_int(node, "axis", 1)}});
    return true;
}

bool OnnxImporter::flatten(const OnnxNode& node) {
    if (!computes_floats(node)) return false;
    std::string x = value(input(node, 0));
    std::int64_t axis = attr_int(node, "axis", 1);
    if (axis < 0) axis += rank(x);
    if (axis < 0 || axis > rank(x)) fail(node, "its axis is out of range");
    if (axis == 1 && rank(x) > 1)
        put(node, "flatten", {x});
    else
        put(node, "reshape", {x}, {{"shape", axis == 0 ? Ints{1, -1} : Ints{element_count({shape(x).begin(), shape(x).begin() + axis}), -1}}});
    return true;
}

bool OnnxImporter::reshape(const OnnxNode& node) {
    const OnnxTensor* t = node.inputs.size() > 1 ? constant(node, 1) : nullptr;
    if (node.inputs.size() > 1 && !t) return false;
    if (type_of(input(node, 0)) != 1) return false;
    std::string x = value(input(node, 0));
    auto wanted = t ? integers_of(*t) : attr_ints(node, "shape");
    if (!wanted) fail(node, "its shape must be whole numbers");
    if (attr_int(node, "allowzero", 0) != 0 && std::count(wanted->begin(), wanted->end(), 0)) fail(node, "an empty tensor is not supported");
    if (wanted->size() > 8) return false;
    if (!ours_ && shape(x).size() > 1 && *wanted == Ints{shape(x)[0], -1}) {
        put(node, "flatten", {x});
        return true;
    }
    return put_reshape(node, x, *wanted);
}

bool OnnxImporter::squeeze(const OnnxNode& node) {
    if (type_of(input(node, 0)) != 1 || (has(node, 1) && !constant(node, 1))) return false;
    std::string x = value(input(node, 0));
    Ints axes = attr_ints(node, "axes").value_or(Ints{}), dims = shape(x);
    if (has(node, 1)) axes = integers_of(needed(node, 1, "axes")).value_or(Ints{});
    bool wider = node.op == "Unsqueeze";
    std::int64_t all = static_cast<std::int64_t>(dims.size() + (wider ? axes.size() : 0));
    std::set<std::int64_t> places;
    for (std::int64_t a : axes) {
        a += a < 0 ? all : 0;
        if (a < 0 || a >= all || all > 8) fail(node, "an axis is out of range");
        if (!places.insert(a).second) fail(node, "an axis occurs twice");
    }
    Ints out;
    std::size_t next = 0;
    for (std::int64_t i = 0; i < all; ++i) {
        if (wider)
            out.push_back(places.contains(i) ? 1 : dims[next++]);
        else if (!(dims[at(i)] == 1 && (places.contains(i) || places.empty())))
            out.push_back(dims[at(i)]);
        if (!wider && places.contains(i) && dims[at(i)] != 1) fail(node, fmt::format("dimension {} is {}, not 1", i, dims[at(i)]));
    }
    return put_reshape(node, x, out);
}

bool OnnxImporter::transpose(const OnnxNode& node) {
    if (!computes_floats(node)) return false;
    std::string x = value(input(node, 0));
    Ints order(shape(x).size());
    std::iota(order.rbegin(), order.rend(), 0);
    put(node, "transpose", {x}, {{"order", attr_ints(node, "perm").value_or(order)}});
    return true;
}

std::string OnnxImporter::put_transpose(const std::string& near, const char* what, const std::string& x, const Ints& order) {
    return put(near, what, "transpose", {x}, {{"order", order}});
}

std::string OnnxImporter::put_slice(const std::string& name, const std::string& x, std::size_t axis, std::int64_t start, std::int64_t end, std::int64_t step) {
    Ints starts(shape(x).size(), 0), ends(shape(x).size(), to_the_end), steps(shape(x).size(), 1);
    starts[axis] = start, ends[axis] = end, steps[axis] = step;
    return put(Node{name, "slice", {x}, {{"starts", starts}, {"ends", ends}, {"steps", steps}}});
}

bool OnnxImporter::slice(const OnnxNode& node) {
    for (std::size_t i = 1; i < node.inputs.size(); ++i)
        if (has(node, i) && !constant(node, i)) return false;
    if (type_of(input(node, 0)) != 1) return false;
    std::string x = value(input(node, 0));
    const bool by_input = node.inputs.size() > 1;
    auto list = [&](std::size_t i, const char* attr) {
        return by_input ? (has(node, i) ? integers_of(*constant(node, i)) : std::nullopt) : attr_ints(node, attr);
    };
    const Ints from = list(1, "starts").value_or(Ints{}), to = list(2, "ends").value_or(Ints{});
    Ints axes(from.size());
    std::iota(axes.begin(), axes.end(), 0);
    axes = list(3, "axes").value_or(axes);
    const Ints by = list(4, "steps").value_or(Ints(from.size(), 1));
    if (to.size() != from.size() || axes.size() != from.size() || by.size() != from.size()) fail(node, "its starts, ends, axes and steps differ in number");
    Ints starts(shape(x).size(), 0), ends(shape(x).size(), to_the_end), steps(shape(x).size(), 1);
    bool whole = true;
    for (std::size_t i = 0; i < from.size(); ++i) {
        std::int64_t axis = axes[i] < 0 ? axes[i] + rank(x) : axes[i];
        if (axis < 0 || axis >= rank(x)) fail(node, "an axis is out of range");
        if (by[i] <= 0) return false;  // backwards
        const std::int64_t n = shape(x)[at(axis)];
        auto place = [&](std::int64_t v) { return std::clamp<std::int64_t>(v < 0 ? v + n : v, 0, n); };
        starts[at(axis)] = place(from[i]);
        ends[at(axis)] = place(to[i]) == n && to[i] >= 0 ? to_the_end : place(to[i]);
        steps[at(axis)] = std::min<std::int64_t>(by[i], to_the_end);
        if (starts[at(axis)] >= place(to[i])) fail(node, "its result is empty");
        whole = whole && starts[at(axis)] == 0 && place(to[i]) == n && by[i] == 1;
    }
    if (whole && !ours_) return identity(node);
    put(node, "slice", {x}, {{"starts", starts}, {"ends", ends}, {"steps", steps}});
    return true;
}

bool OnnxImporter::split(const OnnxNode& node) {
    if (type_of(input(node, 0)) != 1 || (has(node, 1) && !constant(node, 1))) return false;
    std::string x = value(input(node, 0));
    std::int64_t axis = attr_int(node, "axis", 0);
    if (axis < -rank(x) || axis >= rank(x)) fail(node, "its axis is out of range");
    if (axis < 0) axis += rank(x);
    const std::int64_t n = shape(x)[at(axis)], parts = static_cast<std::int64_t>(node.outputs.size());
    Ints sizes = has(node, 1) ? integers_of(needed(node, 1, "split")).value_or(Ints{}) : attr_ints(node, "split").value_or(Ints{});
    if (sizes.empty()) {
        const std::int64_t each = (n + parts - 1) / parts;
        for (std::int64_t i = 0; i < parts; ++i) sizes.push_back(std::clamp<std::int64_t>(n - i * each, 0, each));
    }
    std::int64_t sum = 0;
    for (std::int64_t s : sizes)
        if (s < 1 || s > n)
            fail(node, "a part is empty or larger than the whole");
        else
            sum += s;
    if (sum != n || static_cast<std::int64_t>(sizes.size()) != parts) fail(node, "its parts do not make the whole");
    const std::string name = name_for(node);
    std::int64_t start = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (used(node, i) || ours_)
            values_[node.outputs[i]] = put_slice(i == 0 ? name : unique(ours_ ? node.outputs[i] : fmt::format("{}.{}", name, i)), x, at(axis), start,
                                                 start + sizes[i] == n ? to_the_end : start + sizes[i], 1);
        start += sizes[i];
    }
    return true;
}

// Indices that go up in even steps are a slice. Where they are no list, the slice takes their shape; PyTorch writes as_strided so.
bool OnnxImporter::gather(const OnnxNode& node) {
    const OnnxTensor* t = constant(node, 1);
    if (!t || type_of(input(node, 0)) != 1 || t->integers.empty()) return false;
    std::string x = value(input(node, 0));
    std::int64_t axis = attr_int(node, "axis", 0);
    if (rank(x) == 0 || axis < -rank(x) || axis >= rank(x)) fail(node, "its axis is out of range");
    if (axis < 0) axis += rank(x);
    const std::int64_t n = shape(x)[at(axis)];
    Ints places = t->integers;
    for (std::int64_t& p : places) {
        if (p < -n || p >= n) fail(node, fmt::format("index {} of {}", p, n));
        p += p < 0 ? n : 0;
    }
    const std::int64_t step = places.size() > 1 ? places[1] - places[0] : 1;
    for (std::size_t i = 1; i < places.size(); ++i)
        if (places[i] - places[i - 1] != step || step < 1) return false;
    const std::string name = name_for(node);
    const bool list = t->dims.size() == 1, whole = static_cast<std::int64_t>(places.size()) == n;
    std::string y = whole && !list ? x : put_slice(list ? name : unique(name + ".part"), x, at(axis), places[0], places.back() + 1, step);
    if (!list) {
        Shape out = shape(y);
        out.erase(out.begin() + axis);
        out.insert(out.begin() + axis, t->dims.begin(), t->dims.end());
        y = put(Node{name, "reshape", {y}, {{"shape", axis == 0 && !whole ? out : batch_free(y, out)}}});
    }
    result(node, y);
    return true;
}

bool OnnxImporter::pad(const OnnxNode& node) {
    if (attr_text(node, "mode", "constant") != "constant" || type_of(input(node, 0)) != 1) return false;
    for (std::size_t i = 1; i < node.inputs.size(); ++i)
        if (has(node, i) && !constant(node, i)) return false;
    std::string x = value(input(node, 0));
    const Ints pads = has(node, 1) ? integers_of(*constant(node, 1)).value_or(Ints{}) : attr_ints(node, "pads").value_or(Ints{});
    Ints axes(shape(x).size());
    std::iota(axes.begin(), axes.end(), 0);
    if (has(node, 3)) axes = integers_of(*constant(node, 3)).value_or(Ints{});
    if (pads.size() != 2 * axes.size()) fail(node, "its pads do not fit to its input");
    const double fill = has(node, 2) ? scalar_of(*constant(node, 2)).value_or(0) : attr_float(node, "value", 0);
    if (!std::isfinite(fill)) return false;
    Ints before(shape(x).size(), 0), after(shape(x).size(), 0);
    bool none = true;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const std::int64_t axis = axes[i] < 0 ? axes[i] + rank(x) : axes[i];
        if (axis < 0 || axis >= rank(x)) fail(node, "an axis is out of range");
        if (pads[i] < 0 || pads[i + axes.size()] < 0) return false;
        before[at(axis)] = pads[i], after[at(axis)] = pads[i + axes.size()];
        none = none && pads[i] == 0 && pads[i + axes.size()] == 0;
    }
    if (none && !ours_) return identity(node);
    put(node, "pad", {x}, {{"before", before}, {"after", after}, {"value", fill}});
    return true;
}

bool OnnxImporter::expand(const OnnxNode& node) {
    const OnnxTensor* t = constant(node, 1);
    if (!t || type_of(input(node, 0)) != 1) return false;
    std::string x = value(input(node, 0));
    Ints wanted = integers_of(*t).value_or(Ints{});
    while (static_cast<std::int64_t>(wanted.size()) < rank(x)) wanted.insert(wanted.begin(), 1);
    if (wanted.size() > 8) return false;
    const std::size_t more = wanted.size() - shape(x).size();
    bool same = more == 0;
    for (std::size_t d = more; d < wanted.size(); ++d) {
        if (wanted[d] == 1 || wanted[d] == shape(x)[d - more]) wanted[d] = 0;
        same = same && wanted[d] == 0;
    }
    if (same && !ours_) return identity(node);
    put(node, "expand", {x}, {{"shape", wanted}});
    return true;
}

// Whole factors of the nearest element are new dimensions that are stretched; whether that is what the node means, its evaluation shows.
bool OnnxImporter::resize(const OnnxNode& node) {
    if (attr_text(node, "mode", "nearest") != "nearest" || type_of(input(node, 0)) != 1) return false;
    std::vector<const OnnxTensor*> in{nullptr};
    for (std::size_t i = 1; i < node.inputs.size(); ++i) {
        if (has(node, i) && !constant(node, i)) return false;
        in.push_back(has(node, i) ? constant(node, i) : nullptr);
    }
    std::string x = value(input(node, 0));
    if (element_count(shape(x)) > 1 << 24 || rank(x) != 4) return false;
    OnnxTensor numbered{OnnxTensor::Kind::float64, shape(x)};
    numbered.doubles.resize(at(element_count(shape(x))));
    std::iota(numbered.doubles.begin(), numbered.doubles.end(), 0);
    in[0] = &numbered;
    OnnxTensor y;
    try {
        const ElementBudget budget(std::int64_t{1} << 26);
        y = std::move(evaluate(node, in, onnx_.opset)[0]);
    } catch (const EvaluationProblem& e) {
        fail(node, e.what());
    }
    const Shape &from = shape(x), to = y.dims;
    if (to[0] != from[0] || to[1] != from[1] || to[2] % from[2] || to[3] % from[3]) return false;
    const std::int64_t fh = to[2] / from[2], fw = to[3] / from[3];
    for (std::size_t i = 0; i < y.doubles.size(); ++i) {
        const auto flat = static_cast<std::int64_t>(i);
        const std::int64_t plane = flat / (to[2] * to[3]), row = flat / to[3] % to[2], column = flat % to[3];
        if (y.doubles[i] != static_cast<double>((plane * from[2] + row / fh) * from[3] + column / fw)) return false;
    }
    if (fh == 1 && fw == 1) return identity(node);
    const std::string name = name_for(node);
    std::string wide = put(name, "apart", "reshape", {x}, {{"shape", Ints{0, 0, from[2], 1, from[3], 1}}});
    wide = put(name, "stretched", "expand", {wide}, {{"shape", Ints{0, 0, 0, fh, 0, fw}}});
    result(node, put(Node{name, "reshape", {wide}, {{"shape", Ints{0, 0, to[2], to[3]}}}}));
    return true;
}

bool OnnxImporter::depth_to_space(const OnnxNode& node) {
    if (!computes_floats(node)) return false;
    std::string x = value(input(node, 0));
    const std::int64_t b = attr_int(node, "blocksize", 1);
    if (rank(x) != 4 || b < 1 || b > 1 << 15) fail(node, "four dimensions and a block are expected");
    const std::int64_t c = shape(x)[1], h = shape(x)[2], w = shape(x)[3];
    const std::string name = name_for(node);
    Ints apart, order, wanted;
    const bool channels_first = attr_text(node, "mode", "DCR") == "CRD";
    if (node.op == "SpaceToDepth") {
        if (h % b || w % b) fail(node, "its block does not divide its image");
        apart = {0, c, h / b, b, w / b, b}, order = channels_first ? Ints{0, 1, 3, 5, 2, 4} : Ints{0, 3, 5, 1, 2, 4}, wanted = {0, c * b * b, h / b, w / b};
    } else {
        if (c % (b * b)) fail(node, "its block does not divide its channels");
        const std::int64_t k = c / (b * b);
        apart = channels_first ? Ints{0, k, b, b, h, w} : Ints{0, b, b, k, h, w};
        order = channels_first ? Ints{0, 1, 4, 2, 5, 3} : Ints{0, 3, 4, 1, 5, 2};
        wanted = {0, k, h * b, w * b};
    }
    std::string y = put_transpose(name, "blocks", put(name, "apart", "reshape", {x}, {{"shape", apart}}), order);
    result(node, put(Node{name, "reshape", {y}, {{"shape", wanted}}}));
    return true;
}

}  // namespace loopegg
