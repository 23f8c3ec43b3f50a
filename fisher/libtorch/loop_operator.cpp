#include "fisher/libtorch/loop_operator.hpp"

#include <algorithm>

#include "fisher/libtorch/formula.hpp"
#include "graph/loop_operators.hpp"

namespace loopegg {
namespace {

using Ints = std::vector<std::int64_t>;

// The element that each instance reads, one dimension for each axis.
at::Tensor seen_by_instances(const LoopRead& read, const LoopNest& nest, const at::Tensor& x) {
    const std::size_t rank = read.shape.size();
    Ints before(rank, 0), after(rank, 0), pads;
    for (std::size_t d = 0; d < rank; ++d) {
        const auto [low, high] = reach(read.index[d], nest.axes);
        before[d] = std::max<std::int64_t>(0, -low), after[d] = std::max<std::int64_t>(0, high + 1 - read.shape[d]);
    }
    for (std::size_t d = rank; d-- > 0;) pads.push_back(before[d]), pads.push_back(after[d]);  // LibTorch counts from the last dimension
    const at::Tensor padded = read.padded ? at::constant_pad_nd(x, pads, nest.identity()) : x.contiguous();
    Ints sizes, strides(nest.axes.size(), 0);
    std::int64_t offset = padded.storage_offset();
    for (const Axis& axis : nest.axes) sizes.push_back(axis.extent);
    for (std::size_t d = 0; d < rank; ++d) {
        const std::int64_t stride = padded.stride(static_cast<std::int64_t>(d));
        offset += (read.index[d].offset + before[d]) * stride;
        for (std::size_t a = 0; a < sizes.size(); ++a) strides[a] += read.index[d].coefficients[a] * stride;
    }
    return at::as_strided(padded, sizes, strides, offset);
}

}  // namespace

at::Tensor run_loop_operator(const Node& node, const std::vector<at::Tensor>& inputs) {
    const LoopOperator& op = *find_loop_operator(node.op);
    const LoopNest nest = loop_nest(op, sizes_of(op, node));
    std::vector<at::Tensor> seen;
    for (std::size_t i = 0; i < nest.reads.size(); ++i) seen.push_back(seen_by_instances(nest.reads[i], nest, inputs[i]));
    const at::Tensor value = formula_value(nest.value, inputs[0], [&](const std::string& name) { return seen.at(name == "I" ? 0 : 1); });
    Ints reductions, order;
    for (std::size_t a = 0; a < nest.axes.size(); ++a)
        if (nest.axes[a].reduction) reductions.push_back(static_cast<std::int64_t>(a));
    at::Tensor y = value;
    if (!reductions.empty()) y = nest.combine == LoopCombine::max ? at::amax(value, reductions) : at::sum(value, reductions);
    for (std::size_t axis : nest.output)  // the places of the axes after the reductions are gone
        order.push_back(static_cast<std::int64_t>(axis) -
                        std::count_if(reductions.begin(), reductions.end(), [&](std::int64_t r) { return r < static_cast<std::int64_t>(axis); }));
    y = y.permute(order);
    return formula_value(nest.finish, y, [&](const std::string&) { return y; });
}

}  // namespace loopegg
