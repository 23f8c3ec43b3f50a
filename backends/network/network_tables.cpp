#include "backends/network/network_tables.hpp"

#include <algorithm>

namespace loopegg {
namespace {

loopegg_operand place(const PlacedNetwork& n, const PlacedOperand& o) {
    if (o.port < 0) return {o.constant ? 1 : 0, o.offset};
    const auto port = static_cast<std::size_t>(o.port);
    const std::int64_t begin = port < n.inputs.size() ? n.input_offsets[port] : n.output_places[port - n.inputs.size()].offset;
    return {2 + o.port, o.offset - begin};
}

void add_operator(NetworkTables& t, const PlacedStep& step) {
    const auto first_dim = static_cast<std::int32_t>(t.operator_dims.size());
    for (const Shape& shape : step.read_shapes) {
        t.operator_dims.push_back(static_cast<long>(shape.size()));
        t.operator_dims.insert(t.operator_dims.end(), shape.begin(), shape.end());
    }
    t.nodes.push_back(step.opaque);
    t.operators.push_back({nullptr, static_cast<std::int32_t>(step.output), static_cast<std::int32_t>(step.read_shapes.size()), first_dim, step.shape[0]});
}

}  // namespace

NetworkTables network_tables(const PlacedNetwork& n) {
    NetworkTables t;
    std::size_t most = 1;
    for (const PlacedStep& step : n.steps) {
        loopegg_step row{};
        row.kernel = step.kernel;
        row.first = static_cast<std::int32_t>(t.operands.size());
        row.count = static_cast<std::int32_t>(step.operands.size());
        row.together = step.together;
        for (const PlacedOperand& o : step.operands) t.operands.push_back(place(n, o));
        most = std::max(most, step.operands.size());
        if (step.kernel >= 0) row.turns = n.kernels[static_cast<std::size_t>(step.kernel)].turns;
        if (step.kernel == -2) {
            row.count = static_cast<std::int32_t>(t.operators.size());
            add_operator(t, step);
        } else if (step.kernel < 0) {
            row.first_dim = static_cast<std::int32_t>(t.dimensions.size());
            row.count = static_cast<std::int32_t>(step.shape.size());
            for (std::size_t d = 0; d < step.shape.size(); ++d) t.dimensions.push_back({step.shape[d], step.to_strides[d], step.from_strides[d]});
        }
        t.steps.push_back(row);
    }
    t.input_offsets = n.input_offsets;
    for (const GraphInput& i : n.inputs) t.input_sizes.push_back(element_count(i.shape));
    for (const GraphInput& o : n.outputs) t.output_sizes.push_back(element_count(o.shape));
    for (const PlacedOperand& o : n.output_places) {
        t.output_places.push_back(place(n, o));
        t.output_offsets.push_back(o.port < 0 ? 0 : o.offset);
    }
    t.counts.steps = static_cast<std::int32_t>(t.steps.size());
    t.counts.inputs = static_cast<std::int32_t>(n.inputs.size());
    t.counts.outputs = static_cast<std::int32_t>(n.outputs.size());
    t.counts.most_operands = static_cast<std::int32_t>(most);
    t.counts.arena_floats = n.arena;
    t.counts.weight_floats = static_cast<std::int64_t>(n.weights.size());
    t.counts.fingerprint = weights_fingerprint(n.weights);
    for (const Kernel& k : n.kernels) t.counts.units |= k.units;
    return t;
}

}  // namespace loopegg
