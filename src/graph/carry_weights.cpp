#include "graph/carry_weights.hpp"

#include <algorithm>

#include "graph/flops.hpp"
#include "graph/operators.hpp"
#include "graph/place.hpp"
#include "graph/weights.hpp"

namespace loopegg {
namespace {

// Where a new index along a dimension was; -1 where there was none.
using ChannelPlaces = std::vector<std::int64_t>;

ChannelPlaces places(const ChannelPlaces& map, std::int64_t old_extent, std::int64_t extent) {
    ChannelPlaces out(at(extent), -1);
    const bool known = static_cast<std::int64_t>(map.size()) == extent;
    for (std::int64_t i = 0; i < extent; ++i)
        if (const std::int64_t was = known ? map[at(i)] : i; was < old_extent) out[at(i)] = was;
    return out;
}

// Every value from its place along every dimension; zero where it has none.
Tensor picked(const Tensor& old, const Shape& shape, const std::vector<ChannelPlaces>& by_dimension) {
    Tensor out{shape, std::vector<float>(at(element_count(shape)), 0.0f)};
    std::vector<std::int64_t> index(shape.size(), 0);
    for (float& value : out.values) {
        std::int64_t flat = 0;
        bool inside = true;
        for (std::size_t d = 0; d < shape.size(); ++d) {
            const std::int64_t was = by_dimension[d][at(index[d])];
            flat = flat * old.shape[d] + was, inside &= was >= 0;
        }
        if (inside) value = old.values[at(flat)];
        for (std::size_t d = shape.size(); d-- > 0;) {
            if (++index[d] < shape[d]) break;
            index[d] = 0;
        }
    }
    return out;
}

// A linear's weight is outputs by inputs; every other tensor but a convolution's weight has at most one dimension of channels: `axis`.
Tensor plain(const Node& node, const Tensor& old, const Shape& shape, const ChannelMap& map, std::size_t axis) {
    if (old.shape.size() != shape.size()) return {shape, std::vector<float>(at(element_count(shape)), 0.0f)};
    std::vector<ChannelPlaces> by_dimension;
    for (std::size_t d = 0; d < shape.size(); ++d) {
        const bool inputs = node.op == "linear" && d == 1;
        by_dimension.push_back(places(inputs ? map.inputs : d == axis ? map.outputs : ChannelPlaces{}, old.shape[d], shape[d]));
    }
    return picked(old, shape, by_dimension);
}

Tensor conv_weight(const Node& from, const Tensor& old, const Node& to, const Shape& shape, const ChannelMap& map) {
    Tensor out{shape, std::vector<float>(at(element_count(shape)), 0.0f)};
    const std::int64_t old_per_group = old.shape[1], old_group = old.shape[0] / from.integer("groups"), group = shape[0] / to.integer("groups");
    const ChannelPlaces rows = places(map.outputs, old.shape[0], shape[0]),
                        columns = places(map.inputs, old_per_group * from.integer("groups"), shape[1] * to.integer("groups"));
    std::int64_t first[2], step[2];  // kernel place k of the new is place first + k * step of the old
    for (std::size_t d = 0; d < 2; ++d) {
        std::int64_t dilation = from.integers("dilation")[d];
        first[d] = (from.integers("padding")[d] - to.integers("padding")[d]) / dilation;
        step[d] = std::max<std::int64_t>(1, to.integers("dilation")[d] / dilation);
    }
    for (std::int64_t o = 0; o < shape[0]; ++o) {
        const std::int64_t row = rows[at(o)];
        if (row < 0) continue;
        for (std::int64_t i = 0; i < shape[1]; ++i) {
            // within the old group of this output
            const std::int64_t column = columns[at(o / group * shape[1] + i)], input = column - row / old_group * old_per_group;
            if (column < 0 || input < 0 || input >= old_per_group) continue;
            for (std::int64_t y = 0; y < shape[2]; ++y)
                for (std::int64_t x = 0; x < shape[3]; ++x) {
                    std::int64_t ky = first[0] + y * step[0], kx = first[1] + x * step[1];
                    if (ky < 0 || ky >= old.shape[2] || kx < 0 || kx >= old.shape[3]) continue;
                    out.values[at(((o * shape[1] + i) * shape[2] + y) * shape[3] + x)] =
                        old.values[at(((row * old.shape[1] + input) * old.shape[2] + ky) * old.shape[3] + kx)];
                }
        }
    }
    return out;
}

void mask_out(Tensor& tensor, const std::vector<char>& mask) {
    for (std::size_t i = 0; i < mask.size(); ++i)
        if (!mask[i]) tensor.values[i] = 0;
}

}  // namespace

Weights carry_weights(const Graph& from, const Weights& weights, const Graph& to, std::uint64_t seed, const ChannelWorth& worth) {
    Weights out, drawn;
    const std::map<std::string, ChannelMap> maps = channel_maps(from, to, worth);
    const Streams streams = streams_of(to);
    for (const Node& node : to.nodes) {
        const Node* old_node = from.find(node.name);
        for (const Parameter& p : parameters_of(node)) {
            auto old = weights.find(p.name);
            bool weight = p.name == node.name + ".weight";
            if (old == weights.end() || !old_node || old_node->op != node.op) {
                if (drawn.empty()) drawn = initial_weights(to, seed);
                out[p.name] = drawn.at(p.name);
            } else if (node.op == "conv2d" && weight) {
                out[p.name] = conv_weight(*old_node, old->second, node, p.shape, maps.at(node.name));
            } else {
                const auto channels = streams.of.find(node.name);
                out[p.name] =
                    plain(node, old->second, p.shape, maps.at(node.name), node.op == "parameter" && channels != streams.of.end() ? channels->second.axis : 0);
            }
            if (weight && !node.domain.whole()) mask_out(out[p.name], weight_mask(node));
        }
    }
    return out;
}

}  // namespace loopegg
