#include "backends/network/value_orders.hpp"

#include <algorithm>
#include <numeric>

#include "base/error.hpp"

namespace loopegg {
namespace {

Statement statement_of_step(const NetworkStep& step) { return statement_of(nest_parts(step.nest).statement); }

// Pieces that a copy moves whole, one after another: as a join along channels does.
std::int64_t moved_piece(const CopyStep& c) {
    if (!c.part || c.shape.size() != 2 || c.to_strides[1] != 1 || c.from_strides[1] != 1) return 0;
    std::int64_t piece = std::gcd(c.shape[1], std::gcd(c.to_offset, c.from_offset));
    if (c.shape[0] > 1) piece = std::gcd(piece, std::gcd(c.to_strides[0], c.from_strides[0]));
    return piece;
}

}  // namespace

bool SameOrder::takes(const MemoryOrder& order) const {
    return std::all_of(order.begin(), order.end(), [&](const Interleaved& i) { return i.ragged == 0 && piece % (i.rows * i.length) == 0; });
}

bool is_scratch(const std::string& value) { return value.find('#') != value.npos; }

bool takes_any_order(const NetworkPlan::Step& step) { return step.nest && works_in_any_order(statement_of_step(*step.nest)); }

ValueOrders value_orders(const NetworkPlan& plan, const Graph& graph) {
    ValueOrders all;
    for (const GraphInput& in : graph.inputs) all.logical.insert(in.name);
    all.logical.insert(graph.outputs.begin(), graph.outputs.end());  // an output is fused into no other node, so its value has its name
    for (const auto& [value, values] : plan.constants) all.logical.insert(value);
    for (const auto& [value, in] : plan.inside) all.alike.push_back({value, in.first, std::gcd(plan.sizes.at(value), in.second)});
    for (const NetworkPlan::Step& step : plan.steps) {
        const std::vector<std::string> values = step.values();
        if (takes_any_order(step)) {
            for (std::size_t i = 1; i < values.size(); ++i) all.alike.push_back({values[0], values[i]});
        } else if (step.copy && moved_piece(*step.copy) > 0) {
            all.alike.push_back({step.copy->to, step.copy->from, moved_piece(*step.copy)});
        } else if (!step.nest) {
            all.logical.insert(values.begin(), values.end());
        }
    }
    return all;
}

void require_one_order(const NetworkPlan& plan, const Graph& graph) {
    std::map<std::string, MemoryOrder> known;
    const auto note = [&](const std::string& value, const MemoryOrder& order) {
        const auto [at, fresh] = known.try_emplace(value, order);
        if (at->second != order) throw InternalFault("the value '" + value + "' is read in another order than it is written in");
        return fresh;
    };
    const ValueOrders orders = value_orders(plan, graph);
    for (const std::string& value : orders.logical) note(value, {});
    for (const NetworkPlan::Step& step : plan.steps) {
        if (!step.nest || takes_any_order(step)) continue;
        const Statement s = statement_of_step(*step.nest);
        for (std::size_t i = 0; i < s.buffers.size(); ++i)
            if (const std::string& value = step.nest->operands[i].value; !value.empty() && !is_scratch(value)) note(value, s.buffers[i].order());
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (const SameOrder& pair : orders.alike)
            for (const auto& [from, to] : {std::pair(pair.a, pair.b), std::pair(pair.b, pair.a)}) {
                const auto found = known.find(from);
                if (found == known.end()) continue;
                const MemoryOrder order = found->second;
                if (!pair.takes(order)) throw InternalFault("the value '" + from + "' is stored in an order that breaks pieces of it");
                changed = note(to, order) || changed;
            }
    }
}

}  // namespace loopegg
