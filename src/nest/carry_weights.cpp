#include "nest/carry_weights.hpp"

#include <algorithm>

#include "graph/operators.hpp"
#include "graph/weights.hpp"

namespace loopegg {
namespace {

// Channels of a convolution, by group.
struct Channels {
    std::int64_t groups, out, in;   // out and in per group
    explicit Channels(const Node& node) : groups(node.integer("groups")), out(node.shape[1] / groups), in(node.input_shapes[0][1] / groups) {}
};

// The original's output channel that became channel `o`: when there are fewer, the first of each of the original's groups.
std::int64_t source_channel(const Channels& from, std::int64_t variant_channels, std::int64_t o) {
    std::int64_t kept = variant_channels / from.groups;
    return kept == 0 || kept == from.out ? o : o / kept * from.out + o % kept;
}

Tensor conv_weight(const Node& from_node, const Tensor& from_weight, const Node& to_node, Tensor drawn) {
    Channels from(from_node), to(to_node);
    std::int64_t window = drawn.shape[2] * drawn.shape[3];
    if (from_weight.shape[2] != drawn.shape[2] || from_weight.shape[3] != drawn.shape[3]) return drawn;
    std::int64_t channels = to.groups * to.out;
    for (std::int64_t o = 0; o < channels; ++o) {
        std::int64_t from_o = source_channel(from, channels, o);
        for (std::int64_t i = 0; i < to.in; ++i) {
            std::int64_t in = o / to.out * to.in + i, from_i = in - from_o / from.out * from.in;
            if (from_i < 0 || from_i >= from.in || from_o >= from.groups * from.out) continue;
            auto source = from_weight.values.begin() + (from_o * from.in + from_i) * window;
            std::copy(source, source + window, drawn.values.begin() + (o * to.in + i) * window);
        }
    }
    return drawn;
}

// The first entries along every dimension.
Tensor leading(const Tensor& from, Tensor drawn) {
    if (from.shape == drawn.shape) return from;
    if (from.shape.size() != drawn.shape.size()) return drawn;
    std::vector<std::int64_t> at(drawn.shape.size(), 0);
    for (float& value : drawn.values) {
        std::int64_t source = 0;
        bool inside = true;
        for (std::size_t d = 0; d < at.size(); ++d) inside = inside && at[d] < from.shape[d], source = source * from.shape[d] + at[d];
        if (inside) value = from.values[static_cast<std::size_t>(source)];
        for (std::size_t d = at.size(); d-- > 0;) {
            if (++at[d] < drawn.shape[d]) break;
            at[d] = 0;
        }
    }
    return drawn;
}

}  // namespace

Weights carry_weights(const Graph& original, const Weights& weights, const Graph& variant, std::uint64_t seed) {
    Weights out = initial_weights(variant, seed);
    for (const Node& node : variant.nodes) {
        const Node* from = original.find(node.name);
        if (from == nullptr || from->op != node.op) continue;
        for (const Parameter& p : parameters_of(node)) {
            auto source = weights.find(p.name);
            if (source == weights.end()) continue;
            Tensor& target = out.at(p.name);
            if (node.op != "conv2d") {
                target = leading(source->second, std::move(target));
            } else if (p.shape.size() == 4) {
                target = conv_weight(*from, source->second, node, std::move(target));
            } else {
                Channels channels(*from);
                for (std::int64_t o = 0; o < p.shape[0]; ++o)
                    target.values[static_cast<std::size_t>(o)] = source->second.values[static_cast<std::size_t>(source_channel(channels, p.shape[0], o))];
            }
        }
    }
    return out;
}

}  // namespace loopegg
