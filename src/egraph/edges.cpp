// The edges of an EGraph: each kept once, though merges may make two of them one.
#include <algorithm>

#include "egraph/egraph.hpp"

namespace loopegg {
namespace {

std::size_t key_of(const EGraph& graph, const Edge& e) {
    std::size_t key = (e.rule.id() + 1) * 0x9E3779B97F4A7C15ull;
    auto mix = [&](std::size_t v) { key = (key ^ (key >> 31) ^ v) * 0xff51afd7ed558ccdull; };
    mix(graph.find(e.from));
    mix(graph.find(e.to));
    for (const auto& [variable, c] : e.substitution) mix(graph.find(c));
    return key;
}

bool same(const EGraph& graph, const Edge& x, const Edge& y) {
    return x.rule == y.rule && graph.equal(x.from, y.from) && graph.equal(x.to, y.to) &&
           std::equal(x.substitution.begin(), x.substitution.end(), y.substitution.begin(), y.substitution.end(),
                      [&](const auto& p, const auto& q) { return p.first == q.first && graph.equal(p.second, q.second); });
}

}  // namespace

bool EGraph::has_edge(const Edge& edge) const {
    const auto [first, last] = edge_ids_.equal_range(key_of(*this, edge));
    return std::any_of(first, last, [&](const auto& entry) { return same(*this, edges_[entry.second], edge); });
}

bool EGraph::add_edge(Edge edge) {
    if (has_edge(edge)) return false;
    edge_ids_.emplace(key_of(*this, edge), static_cast<EdgeId>(edges_.size()));
    edges_.push_back(std::move(edge));
    return true;
}

// Keys are made of canonical classes, so merges make them again.
void EGraph::key_edges() {
    if (edges_.empty() || edges_keyed_at_ == live_classes_) return;
    std::vector<Edge> all;
    all.swap(edges_);
    edge_ids_.clear();
    for (Edge& e : all) add_edge(std::move(e));
    edges_keyed_at_ = live_classes_;
}

}  // namespace loopegg
