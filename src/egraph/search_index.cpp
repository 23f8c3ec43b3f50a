#include "egraph/search_index.hpp"

#include <numeric>

namespace loopegg {

void SearchIndex::update(std::uint32_t seen) {
    all_known_ = false;
    all_ = {};
    with_facts_.clear();
    epochs_.erase(epochs_.begin(), epochs_.upper_bound(seen));
    if (pops_ != graph_.pops()) epochs_.clear();
    pops_ = graph_.pops();
}

std::span<const NodeId> SearchIndex::all(OpId op) {
    if (!all_known_) {
        std::vector<NodeId> nodes;
        nodes.reserve(graph_.node_count());
        for (NodeId n = 0; n < graph_.node_bound(); ++n)
            if (!graph_.dead(n)) nodes.push_back(n);
        all_ = group(nodes);
        all_known_ = true;
    }
    return all_.of(op);
}

void SearchIndex::touched(std::uint32_t since, std::uint32_t upto, OpId op, std::vector<Touched>& out) {
    for (std::uint32_t e = since + 1; e <= upto; ++e) {
        const auto [it, made] = epochs_.try_emplace(e);
        if (made) it->second = group(graph_.touched_in(e));
        const auto nodes = it->second.of(op);
        if (!nodes.empty()) out.push_back({e, nodes});
    }
}

const SearchIndex::WithFacts& SearchIndex::with_facts(std::uint32_t since) {
    const auto [it, made] = with_facts_.try_emplace(since);
    WithFacts& out = it->second;
    if (!made) return out;
    std::vector<NodeId> nodes;
    out.marked.resize(graph_.node_bound());
    for (NodeId n = 0; n < graph_.node_bound(); ++n) {
        if (graph_.dead(n)) continue;
        const NodeTable::Record& r = graph_.table().record(n);
        bool changed = graph_.stamp(n) > since || graph_.class_stamp(r.in) > since;
        for (ClassId c : graph_.table().children(r)) changed |= graph_.class_stamp(c) > since;
        if (changed) out.marked[n] = true, nodes.push_back(n);
    }
    out.by_op = group(nodes);
    return out;
}

NodesByOp SearchIndex::group(std::span<const NodeId> nodes) const {
    NodesByOp out;
    out.first.assign(graph_.table().op_count() + 1, 0);
    for (NodeId n : nodes) ++out.first[(graph_.table().record(n).op & ~NodeTable::dead_bit) + 1];
    std::partial_sum(out.first.begin(), out.first.end(), out.first.begin());
    std::vector<std::uint32_t> at(out.first.begin(), out.first.end() - 1);
    out.nodes.resize(nodes.size());
    for (NodeId n : nodes) out.nodes[at[graph_.table().record(n).op & ~NodeTable::dead_bit]++] = n;
    return out;
}

}  // namespace loopegg
