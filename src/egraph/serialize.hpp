// E-graphs as files: egraph-serialize JSON, which other programs read and write, and Graphviz for small ones.
//
//   {"nodes": {"7.0": {"op": "+", "children": ["2.0", "3.0"], "eclass": "7", "cost": 1}, ...}, "root_eclasses": ["7"]}
//
// A child is the name of some node of the child's class. Equal e-graphs give equal bytes.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/source.hpp"
#include "egraph/egraph.hpp"

namespace loopegg {

// `cost` gives the cost of each node. Without it every cost is 1.
std::string write_egraph_json(const EGraph& graph, std::span<const ClassId> roots, const std::function<double(NodeId)>& cost = {});

struct ReadEGraph {
    EGraph graph;
    std::vector<ClassId> roots;
    std::map<std::string, ClassId> classes;  // by the name in the file
};
// Throws UserError with the place: a child that is no node, a root that is no class, a class without a finite term. Two classes that
// hold the same node become one, as in any e-graph.
ReadEGraph read_egraph_json(const SourcePtr& source, EGraph::Options options = {});

// A box for each class, a row for each node. Throws UserError when there are more than `most` nodes: no picture helps then.
std::string write_egraph_dot(const EGraph& graph, std::size_t most = 500);

}  // namespace loopegg
