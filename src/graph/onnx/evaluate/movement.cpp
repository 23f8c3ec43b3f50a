// Operators that move elements and compute nothing.
#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "graph/onnx/evaluate/tensors.hpp"

namespace loopegg::onnx_eval {
namespace {

Outputs transpose(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor& x = need(in, 0);
    Ints order(x.dims.size());
    std::iota(order.rbegin(), order.rend(), 0);
    order = attr_ints(node, "perm").value_or(order);
    Ints sorted = order, dims, strides, from = strides_of(x.dims);
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t d = 0; d < sorted.size(); ++d)
        if (sorted.size() != x.dims.size() || sorted[d] != static_cast<std::int64_t>(d)) problem("its order does not name each dimension once");
    for (std::int64_t d : order) dims.push_back(x.dims[at(d)]), strides.push_back(from[at(d)]);
    OnnxTensor y = make(element_type(x), dims);
    each(dims, {strides}, [&](std::size_t i, const Ints& o) { copy_element(y, i, x, at(o[0])); });
    return {y};
}

Outputs concat(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor& first = need(in, 0);
    const std::size_t axis = at(placed_axis(attr_int(node, "axis", 1), rank_of(first)));
    Ints dims = first.dims;
    dims[axis] = 0;
    for (std::size_t i = 0; i < in.size(); ++i) {
        const OnnxTensor& t = need(in, i);
        for (std::size_t d = 0; d < dims.size(); ++d)
            if (t.dims.size() != dims.size() || t.kind != first.kind || (d != axis && t.dims[d] != dims[d])) problem("its inputs do not fit together");
        dims[axis] += t.dims[axis];
    }
    OnnxTensor y = make(element_type(first), dims);
    std::int64_t inner = 1, offset = 0;
    for (std::size_t d = axis + 1; d < dims.size(); ++d) inner *= dims[d];
    for (std::size_t i = 0; i < in.size(); ++i) {
        const std::int64_t part = in[i]->dims[axis] * inner;
        for (std::size_t k = 0, n = size_of(*in[i]); k < n; ++k)
            copy_element(y, at(static_cast<std::int64_t>(k) / part * dims[axis] * inner + offset + static_cast<std::int64_t>(k) % part), *in[i], k);
        offset += part;
    }
    return {y};
}

OnnxTensor part(const OnnxTensor& x, const Ints& starts, const Ints& steps, const Ints& dims) {
    const Ints from = strides_of(x.dims);
    std::int64_t base = 0;
    Ints strides;
    for (std::size_t d = 0; d < dims.size(); ++d) base += starts[d] * from[d], strides.push_back(steps[d] * from[d]);
    OnnxTensor y = make(element_type(x), dims);
    each(dims, {strides}, [&](std::size_t i, const Ints& o) { copy_element(y, i, x, at(base + o[0])); });
    return y;
}

Outputs slice(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor& x = need(in, 0);
    const bool by_input = in.size() > 1;
    const Ints starts = by_input ? list_of(need(in, 1)) : attr_ints(node, "starts").value_or(Ints{}),
               ends = by_input ? list_of(need(in, 2)) : attr_ints(node, "ends").value_or(Ints{});
    Ints axes(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
    if (!by_input)
        axes = attr_ints(node, "axes").value_or(axes);
    else if (const OnnxTensor* t = maybe(in, 3))
        axes = list_of(*t);
    const OnnxTensor* given = maybe(in, 4);
    const Ints steps = given ? list_of(*given) : Ints(starts.size(), 1);
    if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
        problem("its starts, ends, axes and steps differ in number");
    Ints from(x.dims.size(), 0), by(x.dims.size(), 1), dims = x.dims;
    for (std::size_t i = 0; i < starts.size(); ++i) {
        const std::size_t d = at(placed_axis(axes[i], rank_of(x)));
        const std::int64_t n = x.dims[d], step = steps[i];
        if (n == 0) continue;
        if (step == 0 || step == std::numeric_limits<std::int64_t>::min()) problem("a step of zero");
        auto place = [&](std::int64_t v, std::int64_t low, std::int64_t high) { return std::clamp(v < 0 ? v + n : v, low, high); };
        const std::int64_t first = step > 0 ? place(starts[i], 0, n) : place(starts[i], 0, n - 1),
                           last = step > 0 ? place(ends[i], 0, n) : place(ends[i], -1, n - 1);
        const std::int64_t span = step > 0 ? last - first : first - last, stride = step > 0 ? step : -step;
        dims[d] = span <= 0 ? 0 : (span - 1) / stride + 1, from[d] = dims[d] ? first : 0, by[d] = step;
    }
    return {part(x, from, by, dims)};
}

Outputs split(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor& x = need(in, 0);
    const std::size_t axis = at(placed_axis(attr_int(node, "axis", 0), rank_of(x)));
    const OnnxTensor* given = maybe(in, 1);
    Ints sizes = given ? list_of(*given) : attr_ints(node, "split").value_or(Ints{});
    if (sizes.empty()) {
        const std::int64_t n = static_cast<std::int64_t>(node.outputs.size()), size = (x.dims[axis] + n - 1) / n;
        for (std::int64_t i = 0; i < n; ++i) sizes.push_back(std::clamp<std::int64_t>(x.dims[axis] - i * size, 0, size));
    }
    Outputs all;
    Ints starts(x.dims.size(), 0), steps(x.dims.size(), 1), dims = x.dims;
    for (std::int64_t size : sizes) {
        dims[axis] = size;
        if (size < 0 || starts[axis] + size > x.dims[axis]) problem("its parts are larger than the whole");
        all.push_back(part(x, starts, steps, dims));
        starts[axis] += size;
    }
    if (starts[axis] != x.dims[axis] || all.size() != node.outputs.size()) problem("its parts do not make the whole");
    return all;
}

std::int64_t inside(std::int64_t i, std::int64_t n) {
    if (i < -n || i >= n) problem("index " + std::to_string(i) + " of " + std::to_string(n));
    return i < 0 ? i + n : i;
}

Outputs gather(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor &x = need(in, 0), &index = need(in, 1);
    const std::size_t axis = at(placed_axis(attr_int(node, "axis", 0), rank_of(x)));
    Ints dims(x.dims.begin(), x.dims.begin() + static_cast<std::ptrdiff_t>(axis));
    dims.insert(dims.end(), index.dims.begin(), index.dims.end());
    dims.insert(dims.end(), x.dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.dims.end());
    std::int64_t inner = 1, count = count_of(index.dims), n = x.dims[axis];
    for (std::size_t d = axis + 1; d < x.dims.size(); ++d) inner *= x.dims[d];
    const Ints places = list_of(index);
    return {picked(x, dims, [&](std::size_t i) {
        const auto flat = static_cast<std::int64_t>(i);
        return (flat / (inner * count) * n + inside(places[at(flat / inner % count)], n)) * inner + flat % inner;
    })};
}

// Calls `visit` with every element of `index` and the element of `x` that it names: its own place, but along the node's axis what it says.
template <class Visit>
void each_indexed(const OnnxNode& node, const OnnxTensor& x, const OnnxTensor& index, Visit visit) {
    const std::size_t axis = at(placed_axis(attr_int(node, "axis", 0), rank_of(x)));
    for (std::size_t d = 0; d < x.dims.size(); ++d)
        if (d != axis && index.dims[d] > x.dims[d]) problem("its indices are larger than its data");
    Ints strides = strides_of(x.dims);
    const std::int64_t step = strides[axis];
    strides[axis] = 0;
    const Ints places = list_of(index);
    each(index.dims, {strides}, [&](std::size_t i, const Ints& o) { visit(i, at(o[0] + inside(places[i], x.dims[axis]) * step)); });
}

Outputs gather_elements(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor &x = need(in, 0), &index = need(in, 1);
    if (index.dims.size() != x.dims.size()) problem("its indices have another number of dimensions");
    OnnxTensor y = make(element_type(x), index.dims);
    each_indexed(node, x, index, [&](std::size_t i, std::size_t place) { copy_element(y, i, x, place); });
    return {y};
}

// The offsets in x that tuples of indices name, and how many elements each represents.
std::pair<Ints, std::int64_t> tuples(const OnnxTensor& x, const OnnxTensor& index, std::int64_t batch_dims) {
    if (index.dims.empty() || index.dims.back() + batch_dims > rank_of(x) || batch_dims >= rank_of(index) || batch_dims < 0)
        problem("its indices do not fit to its data");
    const std::int64_t depth = index.dims.back(), count = depth ? count_of(index.dims) / depth : count_of(Ints(index.dims.begin(), index.dims.end() - 1));
    const Ints strides = strides_of(x.dims), places = list_of(index);
    std::int64_t batch = 1, inner = 1;
    for (std::int64_t d = 0; d < batch_dims; ++d) batch *= x.dims[at(d)];
    for (std::int64_t d = batch_dims + depth; d < rank_of(x); ++d) inner *= x.dims[at(d)];
    Ints offsets;
    for (std::int64_t t = 0; t < count; ++t) {
        std::int64_t offset = batch_dims ? t / (count / batch) * strides[at(batch_dims - 1)] : 0;
        for (std::int64_t k = 0; k < depth; ++k) offset += inside(places[at(t * depth + k)], x.dims[at(batch_dims + k)]) * strides[at(batch_dims + k)];
        offsets.push_back(offset);
    }
    return {offsets, inner};
}

Outputs gather_nd(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor &x = need(in, 0), &index = need(in, 1);
    const std::int64_t batch_dims = attr_int(node, "batch_dims", 0);
    const auto [offsets, inner] = tuples(x, index, batch_dims);
    Ints dims(index.dims.begin(), index.dims.end() - 1);
    dims.insert(dims.end(), x.dims.begin() + static_cast<std::ptrdiff_t>(batch_dims + index.dims.back()), x.dims.end());
    return {picked(x, dims, [&, &offsets = offsets, inner = inner](std::size_t i) { return offsets[i / at(inner)] + static_cast<std::int64_t>(i) % inner; })};
}

void merge(OnnxTensor& y, std::size_t i, const OnnxTensor& from, std::size_t j, const std::string& how) {
    if (how == "none") return copy_element(y, i, from, j);
    const double a = number(y, i), b = number(from, j);
    set(y, i, how == "add" ? a + b : how == "mul" ? a * b : how == "max" ? std::max(a, b) : std::min(a, b));
}

Outputs scatter_nd(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor &x = need(in, 0), &index = need(in, 1), &updates = need(in, 2);
    const auto [offsets, inner] = tuples(x, index, 0);
    if (size_of(updates) != offsets.size() * at(inner) || updates.kind != x.kind) problem("its updates do not fit to its indices");
    OnnxTensor y = x;
    for (std::size_t i = 0; i < size_of(updates); ++i) merge(y, at(offsets[i / at(inner)]) + i % at(inner), updates, i, attr_text(node, "reduction", "none"));
    return {y};
}

Outputs scatter_elements(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor &x = need(in, 0), &index = need(in, 1), &updates = need(in, 2);
    if (index.dims.size() != x.dims.size() || updates.dims != index.dims || updates.kind != x.kind) problem("its updates do not fit to its indices");
    OnnxTensor y = x;
    each_indexed(node, x, index, [&](std::size_t i, std::size_t place) { merge(y, place, updates, i, attr_text(node, "reduction", "none")); });
    return {y};
}

Outputs tile(const OnnxNode&, Inputs in, std::int64_t) {
    const OnnxTensor& x = need(in, 0);
    const Ints repeats = list_of(need(in, 1)), from = strides_of(x.dims);
    if (repeats.size() != x.dims.size()) problem("its repeats do not fit to its input");
    Ints dims;
    for (std::size_t d = 0; d < repeats.size(); ++d)
        if (std::int64_t size = 0; repeats[d] < 0 || __builtin_mul_overflow(repeats[d], x.dims[d], &size))
            problem("repeats that are too many");
        else
            dims.push_back(size);
    count_of(dims);
    const Ints to = strides_of(dims);
    return {picked(x, dims, [&](std::size_t i) {
        std::int64_t place = 0;
        for (std::size_t d = 0; d < dims.size(); ++d) place += static_cast<std::int64_t>(i) / to[d] % dims[d] % x.dims[d] * from[d];
        return place;
    })};
}

Outputs expand(const OnnxNode&, Inputs in, std::int64_t) {
    const OnnxTensor& x = need(in, 0);
    const Ints dims = broadcast(x.dims, list_of(need(in, 1)));
    OnnxTensor y = make(element_type(x), dims);
    each(dims, {broadcast_strides(x.dims, dims)}, [&](std::size_t i, const Ints& o) { copy_element(y, i, x, at(o[0])); });
    return {y};
}

Outputs pad(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor& x = need(in, 0);
    const std::string mode = attr_text(node, "mode", "constant");
    const OnnxTensor* given = maybe(in, 1);
    const Ints pads = given ? list_of(*given) : attr_ints(node, "pads").value_or(Ints{});
    Ints axes(x.dims.size());
    std::iota(axes.begin(), axes.end(), 0);
    if (const OnnxTensor* t = maybe(in, 3)) axes = list_of(*t);
    if (pads.size() != 2 * axes.size()) problem("its pads do not fit to its input");
    Ints before(x.dims.size(), 0), dims = x.dims;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const std::size_t d = at(placed_axis(axes[i], rank_of(x)));
        if (std::abs(pads[i]) > max_elements || std::abs(pads[i + axes.size()]) > max_elements) problem("pads that are too large");
        before[d] = pads[i], dims[d] += pads[i] + pads[i + axes.size()];
        if (dims[d] < 0) problem("pads that cut more than there is");
        if (mode != "constant" && x.dims[d] == 0 && dims[d] > 0) problem("no element to repeat");
    }
    const OnnxTensor* fill = maybe(in, 2);
    OnnxTensor y = make(element_type(x), dims);
    const Ints from = strides_of(x.dims), to = strides_of(dims);
    for (std::size_t i = 0, n = size_of(y); i < n; ++i) {
        std::int64_t place = 0;
        bool outside = false;
        for (std::size_t d = 0; d < dims.size(); ++d) {
            std::int64_t v = static_cast<std::int64_t>(i) / to[d] % dims[d] - before[d], size = x.dims[d];
            if (v < 0 || v >= size) {
                if (mode == "constant")
                    outside = true;
                else if (mode == "edge")
                    v = std::clamp<std::int64_t>(v, 0, size - 1);
                else if (mode == "wrap")
                    v = ((v % size) + size) % size;
                else if (mode == "reflect") {
                    if (size == 1)
                        v = 0;
                    else
                        v = ((v % (2 * size - 2)) + 2 * size - 2) % (2 * size - 2), v = v < size ? v : 2 * size - 2 - v;
                } else
                    problem("pad mode '" + mode + "' is not known");
            }
            place += v * from[d];
        }
        if (!outside)
            copy_element(y, i, x, at(place));
        else if (fill)
            set(y, i, number(*fill, 0));
        else
            set(y, i, attr_float(node, "value", 0));
    }
    return {y};
}

// Through a reshape, a transpose, and a reshape back.
OnnxTensor shuffled(const OnnxTensor& x, const Ints& as, const Ints& order, const Ints& dims) {
    OnnxNode turn{"Transpose", "", {}, {"y"}, {{"perm", order}}};
    const OnnxTensor apart = reshaped(x, as);
    const OnnxTensor* in[] = {&apart};
    return reshaped(transpose(turn, in, 0)[0], dims);
}

Outputs depth_to_space(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor& x = need(in, 0);
    const std::int64_t b = attr_int(node, "blocksize", 1);
    if (x.dims.size() != 4 || b < 1 || b > 1 << 15) problem("four dimensions and a block are expected");
    const std::int64_t n = x.dims[0], c = x.dims[1], h = x.dims[2], w = x.dims[3];
    if (node.op == "SpaceToDepth") {
        if (h % b || w % b) problem("its block does not divide its image");
        const bool channels_first = attr_text(node, "mode", "DCR") == "CRD";
        return {shuffled(x, {n, c, h / b, b, w / b, b}, channels_first ? Ints{0, 1, 3, 5, 2, 4} : Ints{0, 3, 5, 1, 2, 4}, {n, c * b * b, h / b, w / b})};
    }
    if (c % (b * b)) problem("its block does not divide its channels");
    const std::int64_t k = c / (b * b);
    if (attr_text(node, "mode", "DCR") == "CRD") return {shuffled(x, {n, k, b, b, h, w}, {0, 1, 4, 2, 5, 3}, {n, k, h * b, w * b})};
    return {shuffled(x, {n, b, b, k, h, w}, {0, 3, 4, 1, 5, 2}, {n, k, h * b, w * b})};
}

Outputs trilu(const OnnxNode& node, Inputs in, std::int64_t) {
    OnnxTensor y = need(in, 0);
    if (y.dims.size() < 2) problem("a matrix is expected");
    const OnnxTensor* given = maybe(in, 1);
    const std::int64_t k = given ? whole(*given, 0) : 0, columns = y.dims.back(), rows = y.dims[y.dims.size() - 2];
    const bool upper = attr_int(node, "upper", 1) != 0;
    for (std::size_t i = 0, n = size_of(y); i < n; ++i) {
        const std::int64_t r = static_cast<std::int64_t>(i) / columns % rows, c = static_cast<std::int64_t>(i) % columns;
        if (upper ? c - r < k : c - r > k) set(y, i, 0);
    }
    return {y};
}

Outputs reverse_sequence(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor &x = need(in, 0), &lengths = need(in, 1);
    const std::int64_t batch = attr_int(node, "batch_axis", 1), time = attr_int(node, "time_axis", 0);
    if (x.dims.size() < 2 || batch == time || batch < 0 || batch > 1 || time < 0 || time > 1 || size_of(lengths) != at(x.dims[at(batch)]))
        problem("its axes or lengths do not fit");
    const Ints strides = strides_of(x.dims);
    return {picked(x, x.dims, [&](std::size_t i) {
        const auto flat = static_cast<std::int64_t>(i);
        const std::int64_t t = flat / strides[at(time)] % x.dims[at(time)], b = flat / strides[at(batch)] % x.dims[at(batch)], length = whole(lengths, at(b));
        return t < length ? flat + (length - 1 - 2 * t) * strides[at(time)] : flat;
    })};
}

}  // namespace

Operation movement_operation(const std::string& op) {
    static const std::map<std::string, Operation> all{
        {"Transpose", transpose},
        {"Concat", concat},
        {"Slice", slice},
        {"Split", split},
        {"Gather", gather},
        {"GatherElements", gather_elements},
        {"GatherND", gather_nd},
        {"ScatterND", scatter_nd},
        {"ScatterElements", scatter_elements},
        {"Scatter", scatter_elements},
        {"Tile", tile},
        {"Expand", expand},
        {"Pad", pad},
        {"DepthToSpace", depth_to_space},
        {"SpaceToDepth", depth_to_space},
        {"Trilu", trilu},
        {"ReverseSequence", reverse_sequence},
    };
    auto found = all.find(op);
    return found == all.end() ? nullptr : found->second;
}

}  // namespace loopegg::onnx_eval
