#include "extract/smallest.hpp"

#include <limits>
#include <unordered_map>

#include "base/error.hpp"

namespace loopegg {

SmallestTerms::SmallestTerms(const EGraph& graph) : graph_(graph), size_(graph.class_bound(), std::numeric_limits<double>::infinity()) {
    for (bool changed = true; changed;) {  // about as many rounds as the smallest terms are deep
        changed = false;
        for (ClassId c : graph.classes())
            for (NodeId n : graph.nodes(c))
                if (const double s = size_of(graph.node(n)); s < size_[c]) size_[c] = s, changed = true;
    }
}

double SmallestTerms::size_of(const NodeView& node) const {
    double total = 1;
    for (ClassId child : node.children) total += size_[graph_.find(child)];
    return total;
}

Term SmallestTerms::term(ClassId wanted) const {
    std::unordered_map<ClassId, Term> made;
    std::vector<ClassId> stack{graph_.find(wanted)};
    if (size(wanted) == std::numeric_limits<double>::infinity()) throw UserError("this class has no finite term");
    while (!stack.empty()) {
        const ClassId c = stack.back();
        if (made.contains(c)) {
            stack.pop_back();
            continue;
        }
        NodeId best = none;
        for (NodeId n : graph_.nodes(c))
            if (size_of(graph_.node(n)) == size_[c]) {
                best = n;
                break;
            }
        require(best != none, "a class has a node of its own size");
        const NodeView node = graph_.node(best);
        std::vector<Term> children;
        for (ClassId child : node.children) {
            const auto it = made.find(graph_.find(child));
            if (it == made.end())
                stack.push_back(graph_.find(child));
            else
                children.push_back(it->second);
        }
        if (children.size() == node.children.size()) made.emplace(c, Term(node.op, std::move(children))), stack.pop_back();
    }
    return made.at(graph_.find(wanted));
}

}  // namespace loopegg
