// Tests ask whether two e-graphs hold the same classes, whatever their numbers.
#pragma once
#include <string>
#include <vector>

#include "egraph/egraph.hpp"

namespace loopegg {

// "" when every class of one has exactly one counterpart in the other, node by node; else what differs.
inline std::string difference(const EGraph& a, const EGraph& b) {
    if (a.node_count() != b.node_count()) return "nodes: " + std::to_string(a.node_count()) + " and " + std::to_string(b.node_count());
    if (a.class_count() != b.class_count()) return "classes: " + std::to_string(a.class_count()) + " and " + std::to_string(b.class_count());
    std::vector<ClassId> image(a.class_bound(), none);
    std::vector<ClassId> taken(b.class_bound(), none);
    for (bool again = true; again;) {
        again = false;
        for (ClassId c : a.classes())
            for (NodeId n : a.nodes(c)) {
                const NodeView node = a.node(n);
                std::vector<ClassId> children;
                for (ClassId k : node.children)
                    if (image[k] != none) children.push_back(image[k]);
                if (children.size() != node.children.size()) continue;
                const auto there = b.lookup(node.op, children);
                if (!there) return "a node '" + node.op.text() + "' is in one alone";
                if (image[c] == *there) continue;
                if (image[c] != none) return "two classes of one are one class of the other";
                if (taken[*there] != none) return "one class of one is two classes of the other";
                image[c] = *there, taken[*there] = c, again = true;
            }
    }
    for (ClassId c : a.classes())
        if (image[c] == none) return "a class has no term";
    return "";
}

}  // namespace loopegg
