#include "nest/term/class_terms.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "nest/term/grammar.hpp"

namespace loopegg {
namespace {

// Draws one of a class's nodes, each with a probability in proportion to its count of terms.
template <class Count>
NodeId drawn(const EGraph& graph, ClassId c, double total, std::mt19937_64& random, const Count& count) {
    require(total > 0, "a class without finite terms was sampled");
    double at = std::uniform_real_distribution<double>(0, total)(random);
    NodeId chosen = none;
    for (NodeId n : graph.nodes(c)) {
        double here = count(n);
        if (here <= 0) continue;
        chosen = n;
        at -= here;
        if (at < 0) break;
    }
    return chosen;
}

}  // namespace

double ClassTerms::count_node(NodeId n) {
    double product = 1;
    for (ClassId child : graph_.node(n).children) product *= count(graph_.find(child));
    return product;
}

double ClassTerms::count(ClassId c) {
    c = graph_.find(c);
    if (auto it = counts_.find(c); it != counts_.end()) return it->second;
    if (open_[c]) return 0;
    open_[c] = true;
    double sum = 0;
    for (NodeId n : graph_.nodes(c)) sum += count_node(n);
    open_[c] = false;
    counts_[c] = sum;
    return sum;
}

void ClassTerms::enumerate(ClassId c, std::size_t most, std::vector<Term>& out, std::vector<ClassId>& path) {
    c = graph_.find(c);
    if (std::find(path.begin(), path.end(), c) != path.end()) return;
    path.push_back(c);
    for (NodeId n : graph_.nodes(c)) {
        NodeView node = graph_.node(n);
        std::vector<std::vector<Term>> rows{{}};
        for (ClassId child : node.children) {
            std::vector<Term> below;
            enumerate(child, most, below, path);
            std::vector<std::vector<Term>> longer;
            for (const auto& row : rows)
                for (const Term& t : below) {
                    if (longer.size() >= most) break;
                    longer.push_back(row);
                    longer.back().push_back(t);
                }
            rows = std::move(longer);
        }
        for (auto& row : rows)
            if (out.size() < most) out.emplace_back(node.op, std::move(row));
    }
    path.pop_back();
}

std::vector<Term> ClassTerms::all(ClassId c, std::size_t most) {
    std::vector<Term> out;
    std::vector<ClassId> path;
    enumerate(c, most, out, path);
    return out;
}

Term ClassTerms::sample(ClassId c, std::mt19937_64& random) {
    c = graph_.find(c);
    NodeView node = graph_.node(drawn(graph_, c, count(c), random, [&](NodeId n) { return count_node(n); }));
    std::vector<Term> children;
    for (ClassId child : node.children) children.push_back(sample(child, random));
    return Term(node.op, std::move(children));
}

double ShallowTerms::count_node(NodeId n, int levels) {
    NodeView node = graph_.node(n);
    int below = levels - is_axis_operator(node.op.text());
    double product = below < 0 ? 0 : 1;
    for (ClassId child : node.children)
        if (product > 0) product *= count(child, below);
    return product;
}

double ShallowTerms::count(ClassId c, int levels) {
    c = graph_.find(c);
    if (auto it = counts_.find({c, levels}); it != counts_.end()) return it->second;
    double sum = 0;
    for (NodeId n : graph_.nodes(c)) sum += count_node(n, levels);
    return counts_[{c, levels}] = sum;
}

Term ShallowTerms::sample(ClassId c, int levels, std::mt19937_64& random) {
    c = graph_.find(c);
    NodeView node = graph_.node(drawn(graph_, c, count(c, levels), random, [&](NodeId n) { return count_node(n, levels); }));
    std::vector<Term> children;
    for (ClassId child : node.children) children.push_back(sample(child, levels - is_axis_operator(node.op.text()), random));
    return Term(node.op, std::move(children));
}

}  // namespace loopegg
