// An e-graph as plain data for extraction: nodes, classes, costs, roots. Read from and written as egraph-serialize JSON.
//
//   {"nodes": {"n1": {"op": "+", "children": ["n2", "n3"], "eclass": "c1", "cost": 1.0}, ...},
//    "root_eclasses": ["c1"], "class_data": {...}}
//
// In the file a child names a node, which represents its whole class. Here children are classes.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/source.hpp"

namespace loopegg {

using NodeIndex = std::uint32_t;
using ClassIndex = std::uint32_t;
inline constexpr std::uint32_t no_index = UINT32_MAX;

struct SerializedNode {
    std::string id;  // the node's name in the file
    std::string op;
    std::vector<ClassIndex> children;  // in the operator's order; a class may be there twice
    ClassIndex eclass = no_index;
    double cost = 1;  // finite, not negative
};

struct SerializedClass {
    std::string id;
    std::vector<NodeIndex> nodes;  // never empty
};

struct SerializedEGraph {
    std::vector<SerializedNode> nodes;
    std::vector<SerializedClass> classes;
    std::vector<ClassIndex> roots;  // what is to be extracted: at least one, none twice

    // For building an e-graph: add classes first, then nodes to them.
    ClassIndex add_class(std::string id);
    NodeIndex add_node(ClassIndex eclass, std::string op, std::vector<ClassIndex> children, double cost, std::string id = {});
};

// Throws UserError with the place of every mistake: a child that is no node, a root that is no class, a cost that is negative
// or not a number, no roots, no nodes. Unknown members in addition to the named ones are left alone, as other programs add their own.
SerializedEGraph read_serialized(const SourcePtr& source);

// The same form, sorted by id, so that equal e-graphs give equal bytes.
std::string to_json(const SerializedEGraph& egraph);

// A picture of a small e-graph in Graphviz's language: a box per class, its nodes inside.

// Throws UserError when there are more than `most` nodes: nobody can read such a picture.
std::string to_dot(const SerializedEGraph& egraph, std::size_t most = 500);

}  // namespace loopegg
