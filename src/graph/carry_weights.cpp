#include "graph/carry_weights.hpp"

#include <algorithm>

#include "graph/flops.hpp"
#include "graph/operators.hpp"
#include "graph/weights.hpp"

namespace loopegg {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// The tensor's first values along every dimension; where the new one is larger, zero.
Tensor leading(const Tensor& old, const Shape& shape) {
    Tensor out{shape, std::vector<float>(at(element_count(shape)), 0.0f)};
    if (old.shape.size() != shape.size()) return out;
    std::vector<std::int64_t> index(shape.size(), 0);
    for (float& value : out.values) {
        std::int64_t flat = 0;
        bool inside = true;
        for (std::size_t d = 0; d < shape.size(); ++d) flat = flat * old.shape[d] + index[d], inside &= index[d] < old.shape[d];
        if (inside) value = old.values[at(flat)];
        for (std::size_t d = shape.size(); d-- > 0;) {
            if (++index[d] < shape[d]) break;
            index[d] = 0;
        }
    }
    return out;
}

// The old output channel that a new one was: where there are fewer, the first of each old group are left.
std::int64_t old_channel(const Node& from, std::int64_t old_channels, const Node& to, std::int64_t channels, std::int64_t o) {
    const std::int64_t groups = from.integer("groups"), group = channels / groups;
    return to.integer("groups") < groups || group == 0 ? o : o / group * (old_channels / groups) + o % group;
}

Tensor conv_bias(const Node& from, const Tensor& old, const Node& to, const Shape& shape) {
    Tensor out{shape, std::vector<float>(at(shape[0]), 0.0f)};
    for (std::int64_t o = 0; o < std::min(shape[0], old.shape[0]); ++o) out.values[at(o)] = old.values[at(old_channel(from, old.shape[0], to, shape[0], o))];
    return out;
}

Tensor conv_weight(const Node& from, const Tensor& old, const Node& to, const Shape& shape) {
    Tensor out{shape, std::vector<float>(at(element_count(shape)), 0.0f)};
    std::int64_t old_per_group = old.shape[1], old_group = old.shape[0] / from.integer("groups"), group = shape[0] / to.integer("groups");
    std::int64_t first[2], step[2];   // kernel place k of the new is place first + k * step of the old
    for (std::size_t d = 0; d < 2; ++d) {
        std::int64_t dilation = from.integers("dilation")[d];
        first[d] = (from.integers("padding")[d] - to.integers("padding")[d]) / dilation;
        step[d] = std::max<std::int64_t>(1, to.integers("dilation")[d] / dilation);
    }
    for (std::int64_t o = 0; o < shape[0]; ++o) {
        const std::int64_t row = old_channel(from, old.shape[0], to, shape[0], o);
        for (std::int64_t i = 0; i < shape[1]; ++i)
            for (std::int64_t y = 0; y < shape[2]; ++y)
                for (std::int64_t x = 0; x < shape[3]; ++x) {
                    std::int64_t input = o / group * shape[1] + i - row / old_group * old_per_group;   // within the old group of this output
                    std::int64_t ky = first[0] + y * step[0], kx = first[1] + x * step[1];
                    if (row >= old.shape[0] || input < 0 || input >= old_per_group || ky < 0 || ky >= old.shape[2] || kx < 0 || kx >= old.shape[3]) continue;
                    out.values[at(((o * shape[1] + i) * shape[2] + y) * shape[3] + x)] = old.values[at(((row * old.shape[1] + input) * old.shape[2] + ky) * old.shape[3] + kx)];
                }
    }
    return out;
}

void mask_out(Tensor& tensor, const std::vector<char>& mask) {
    for (std::size_t i = 0; i < mask.size(); ++i)
        if (!mask[i]) tensor.values[i] = 0;
}

}  // namespace

Weights carry_weights(const Graph& from, const Weights& weights, const Graph& to, std::uint64_t seed) {
    Weights out, drawn;
    for (const Node& node : to.nodes) {
        const Node* old_node = from.find(node.name);
        for (const Parameter& p : parameters_of(node)) {
            auto old = weights.find(p.name);
            bool weight = p.name == node.name + ".weight";
            if (old == weights.end() || !old_node || old_node->op != node.op) {
                if (drawn.empty()) drawn = initial_weights(to, seed);
                out[p.name] = drawn.at(p.name);
            } else if (old->second.shape == p.shape && (node.op != "conv2d" || old_node->attrs == node.attrs || !weight)) {
                out[p.name] = old->second;
            } else {
                out[p.name] = node.op != "conv2d" ? leading(old->second, p.shape) : weight ? conv_weight(*old_node, old->second, node, p.shape) : conv_bias(*old_node, old->second, node, p.shape);
            }
            if (weight && !node.domain.whole()) mask_out(out[p.name], weight_mask(node));
        }
    }
    return out;
}

}  // namespace loopegg
