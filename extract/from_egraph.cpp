#include "extract/from_egraph.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace loopegg {
namespace {

struct Kept {
    NodeId node;
    double cost;
};

// The nodes of each class that can be part of a finite choice: not left out, and no child class without nodes.
std::vector<std::vector<Kept>> kept_nodes(const EGraph& graph, const NodeCost& cost) {
    std::vector<std::vector<Kept>> kept(graph.class_bound());
    std::vector<ClassId> emptied;
    for (ClassId c : graph.classes()) {
        for (NodeId n : graph.nodes(c)) {
            const double own = cost ? cost(graph.node(n)) : 1.0;
            if (own >= 0) kept[c].push_back({n, own});
        }
        if (kept[c].empty()) emptied.push_back(c);
    }
    while (!emptied.empty()) {
        const ClassId gone = emptied.back();
        emptied.pop_back();
        for (NodeId p : graph.parents(gone)) {
            const ClassId c = graph.node(p).in;
            if (kept[c].empty()) continue;
            std::erase_if(kept[c], [&](const Kept& k) { return k.node == p; });
            if (kept[c].empty()) emptied.push_back(c);
        }
    }
    return kept;
}

}  // namespace

EGraphCopy copy_of(const EGraph& graph, std::span<const ClassId> roots, const NodeCost& cost) {
    require(graph.clean(), "an e-graph must be rebuilt before it is copied");
    const auto kept = kept_nodes(graph, cost);
    EGraphCopy copy;
    copy.index_of.assign(graph.class_bound(), no_index);
    auto take = [&](ClassId c) {
        if (copy.index_of[c] != no_index) return;
        copy.index_of[c] = copy.egraph.add_class(std::to_string(c));
        copy.class_of.push_back(c);
    };
    for (ClassId root : roots) {
        const ClassId c = graph.find(root);
        if (kept[c].empty()) throw UserError("every term of a class that is to be extracted is left out");
        take(c);
        if (const ClassIndex i = copy.index_of[c]; std::find(copy.egraph.roots.begin(), copy.egraph.roots.end(), i) == copy.egraph.roots.end())
            copy.egraph.roots.push_back(i);
    }
    if (roots.empty())
        for (ClassId c : graph.classes())
            if (!kept[c].empty()) take(c);
    for (std::size_t at = 0; at < copy.class_of.size(); ++at)  // the list grows during the loop
        for (const Kept& k : kept[copy.class_of[at]]) {
            const NodeView view = graph.node(k.node);
            std::vector<ClassIndex> children;
            for (ClassId child : view.children) take(graph.find(child)), children.push_back(copy.index_of[graph.find(child)]);
            copy.egraph.add_node(static_cast<ClassIndex>(at), view.op.text(), std::move(children), k.cost);
            copy.node_of.push_back(k.node);
        }
    return copy;
}

}  // namespace loopegg
