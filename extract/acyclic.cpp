#include "extract/acyclic.hpp"

#include <algorithm>
#include <limits>
#include <queue>

namespace loopegg {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double most = std::numeric_limits<double>::max();  // deep shared terms overflow double; they are still terms

// Which nodes have a class as a child. A node is listed once for each distinct child.
std::vector<std::vector<NodeIndex>> parents_of(const SerializedEGraph& egraph, std::vector<std::uint32_t>& waiting) {
    std::vector<std::vector<NodeIndex>> parents(egraph.classes.size());
    waiting.assign(egraph.nodes.size(), 0);
    for (NodeIndex n = 0; n < egraph.nodes.size(); ++n)
        for (ClassIndex c : egraph.nodes[n].children)
            if (parents[c].empty() || parents[c].back() != n) parents[c].push_back(n), ++waiting[n];
    return parents;
}

struct Offer {
    double cost, size;
    NodeIndex node;
    bool operator>(const Offer& o) const { return std::tie(cost, size, node) > std::tie(o.cost, o.size, o.node); }
};

// Settles classes in the order of `combine`, which must not give less than what a child costs.
template <class Combine>
Trees settle(const SerializedEGraph& egraph, Combine combine) {
    std::vector<std::uint32_t> waiting;
    const auto parents = parents_of(egraph, waiting);
    Trees trees{std::vector<NodeIndex>(egraph.classes.size(), no_index), std::vector<double>(egraph.classes.size(), infinity), {}};
    std::vector<double> size(egraph.classes.size(), infinity);
    std::priority_queue<Offer, std::vector<Offer>, std::greater<>> offers;
    auto offer = [&](NodeIndex n) {
        const double cost = combine(n, trees.cost);
        if (cost < 0) return;
        double total = 1;
        for (ClassIndex c : egraph.nodes[n].children) total += size[c];
        offers.push({std::min(cost, most), std::min(total, most), n});
    };
    for (NodeIndex n = 0; n < egraph.nodes.size(); ++n)
        if (waiting[n] == 0) offer(n);
    while (!offers.empty()) {
        const Offer best = offers.top();
        offers.pop();
        const ClassIndex c = egraph.nodes[best.node].eclass;
        if (trees.choice[c] != no_index) continue;
        trees.choice[c] = best.node, trees.cost[c] = best.cost, size[c] = best.size;
        trees.order.push_back(c);
        for (NodeIndex p : parents[c])
            if (--waiting[p] == 0 && trees.choice[egraph.nodes[p].eclass] == no_index) offer(p);
    }
    return trees;
}

}  // namespace

Trees cheapest_trees(const SerializedEGraph& egraph, const std::function<double(NodeIndex)>& cost_of) {
    return settle(egraph, [&](NodeIndex n, const std::vector<double>& below) {
        double cost = cost_of ? cost_of(n) : egraph.nodes[n].cost;
        if (cost < 0) return cost;
        for (ClassIndex c : egraph.nodes[n].children) cost += below[c];
        return cost;
    });
}

double path_bound(const SerializedEGraph& egraph) {
    const Trees paths = settle(egraph, [&](NodeIndex n, const std::vector<double>& below) {
        double deepest = 0;
        for (ClassIndex c : egraph.nodes[n].children) deepest = std::max(deepest, below[c]);
        return deepest + egraph.nodes[n].cost;
    });
    double bound = 0;
    for (ClassIndex root : egraph.roots) bound = std::max(bound, paths.cost[root]);
    return bound;
}

std::vector<NodeIndex> acyclic_choice(const SerializedEGraph& egraph, const std::vector<NodeIndex>& wanted) {
    // A wanted node is free and any other node costs something, so a term of wanted nodes alone wins wherever there is one.
    return cheapest_trees(egraph, [&](NodeIndex n) { return wanted[egraph.nodes[n].eclass] == n ? 0.0 : egraph.nodes[n].cost + 1; }).choice;
}

}  // namespace loopegg
