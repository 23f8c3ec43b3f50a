#include "nest/space.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace loopegg {

double TermSpace::count_node(NodeId n) {
    double product = 1;
    for (ClassId child : graph_.node(n).children) product *= count(graph_.find(child));
    return product;
}

double TermSpace::count(ClassId c) {
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

void TermSpace::enumerate(ClassId c, std::size_t most, std::vector<Term>& out, std::vector<ClassId>& path) {
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

std::vector<Term> TermSpace::all(ClassId c, std::size_t most) {
    std::vector<Term> out;
    std::vector<ClassId> path;
    enumerate(c, most, out, path);
    return out;
}

Term TermSpace::sample(ClassId c, std::mt19937_64& random) {
    c = graph_.find(c);
    double total = count(c);
    require(total > 0, "a class without finite terms was sampled");
    double at = std::uniform_real_distribution<double>(0, total)(random);
    auto nodes = graph_.nodes(c);
    NodeId chosen = none;
    for (NodeId n : nodes) {
        double here = count_node(n);
        if (here <= 0) continue;
        chosen = n;
        at -= here;
        if (at < 0) break;
    }
    NodeView node = graph_.node(chosen);
    std::vector<Term> children;
    for (ClassId child : node.children) children.push_back(sample(child, random));
    return Term(node.op, std::move(children));
}

}  // namespace loopegg
