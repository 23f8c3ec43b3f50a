// Operators that look for elements.
#include <algorithm>
#include <map>
#include <numeric>

#include "graph/onnx/evaluate/tensors.hpp"

namespace loopegg::onnx_eval {
namespace {

Outputs arg_extreme(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor& x = need(in, 0);
    const std::size_t axis = at(placed_axis(attr_int(node, "axis", 0), rank_of(x)));
    const bool last = attr_int(node, "select_last_index", 0) != 0, most = node.op == "ArgMax";
    Ints dims = x.dims;
    const std::int64_t n = dims[axis];
    if (n < 1) problem("the extreme of nothing");
    if (attr_int(node, "keepdims", 1) != 0)
        dims[axis] = 1;
    else
        dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
    OnnxTensor y = make(int64, dims);
    std::int64_t inner = 1;
    for (std::size_t d = axis + 1; d < x.dims.size(); ++d) inner *= x.dims[d];
    for (std::size_t i = 0; i < y.integers.size(); ++i) {
        const auto flat = static_cast<std::int64_t>(i);
        std::int64_t best = 0;
        auto value = [&](std::int64_t k) { return number(x, at((flat / inner * n + k) * inner + flat % inner)); };
        for (std::int64_t k = 1; k < n; ++k)
            if (most ? value(k) > value(best) : value(k) < value(best))
                best = k;
            else if (last && value(k) == value(best))
                best = k;
        y.integers[i] = best;
    }
    return {y};
}

Outputs top_k(const OnnxNode& node, Inputs in, std::int64_t) {
    const OnnxTensor& x = need(in, 0);
    const std::size_t axis = at(placed_axis(attr_int(node, "axis", -1), rank_of(x)));
    const std::int64_t k = maybe(in, 1) ? whole(need(in, 1), 0) : attr_int(node, "k", 1), n = x.dims[axis];
    if (k < 0 || k > n) problem("more than there are");
    const bool largest = attr_int(node, "largest", 1) != 0;
    Ints dims = x.dims;
    dims[axis] = k;
    OnnxTensor values = make(element_type(x), dims), places = make(int64, dims);
    std::int64_t inner = 1;
    for (std::size_t d = axis + 1; d < x.dims.size(); ++d) inner *= x.dims[d];
    Ints order(at(n));
    for (std::int64_t line = 0; n && line < static_cast<std::int64_t>(size_of(x)) / n; ++line) {
        auto from = [&](std::int64_t i) { return at((line / inner * n + i) * inner + line % inner); };
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
            return largest ? number(x, from(a)) > number(x, from(b)) : number(x, from(a)) < number(x, from(b));
        });
        for (std::int64_t i = 0; i < k; ++i) {
            const std::size_t to = at((line / inner * k + i) * inner + line % inner);
            copy_element(values, to, x, from(order[at(i)]));
            places.integers[to] = order[at(i)];
        }
    }
    return {values, places};
}

Outputs non_zero(const OnnxNode&, Inputs in, std::int64_t) {
    const OnnxTensor& x = need(in, 0);
    Ints found;
    for (std::size_t i = 0, n = size_of(x); i < n; ++i)
        if (number(x, i) != 0) found.push_back(static_cast<std::int64_t>(i));
    const std::int64_t rank = rank_of(x), count = static_cast<std::int64_t>(found.size());
    OnnxTensor y = make(int64, {rank, count});
    const Ints strides = strides_of(x.dims);
    for (std::int64_t d = 0; d < rank; ++d)
        for (std::int64_t i = 0; i < count; ++i) y.integers[at(d * count + i)] = found[at(i)] / strides[at(d)] % x.dims[at(d)];
    return {y};
}

Outputs compress(const OnnxNode& node, Inputs in, std::int64_t) {
    OnnxTensor x = need(in, 0);
    const OnnxTensor& kept = need(in, 1);
    std::int64_t axis = 0;
    if (node.attrs.contains("axis"))
        axis = placed_axis(attr_int(node, "axis", 0), rank_of(x));
    else
        x = reshaped(x, {static_cast<std::int64_t>(size_of(x))});
    Ints places, dims = x.dims;
    for (std::size_t i = 0; i < std::min(size_of(kept), at(x.dims[at(axis)])); ++i)
        if (number(kept, i) != 0) places.push_back(static_cast<std::int64_t>(i));
    const std::int64_t n = dims[at(axis)], count = static_cast<std::int64_t>(places.size());
    dims[at(axis)] = count;
    std::int64_t inner = 1;
    for (std::size_t d = at(axis) + 1; d < dims.size(); ++d) inner *= dims[d];
    return {picked(x, dims, [&](std::size_t i) {
        const auto flat = static_cast<std::int64_t>(i);
        return (flat / (inner * count) * n + places[at(flat / inner % count)]) * inner + flat % inner;
    })};
}

}  // namespace

Operation search_operation(const std::string& op) {
    static const std::map<std::string, Operation> all{
        {"ArgMax", arg_extreme}, {"ArgMin", arg_extreme}, {"TopK", top_k}, {"NonZero", non_zero}, {"Compress", compress}};
    auto found = all.find(op);
    return found == all.end() ? nullptr : found->second;
}

}  // namespace loopegg::onnx_eval
