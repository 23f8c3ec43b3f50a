// Choices that are acyclic by construction: a class is settled only after the children of its node are.
#pragma once
#include <functional>

#include "extract/extraction.hpp"

namespace loopegg {

struct Trees {
    std::vector<NodeIndex> choice;  // by class; no_index: the class has no finite term
    std::vector<double> cost;       // least tree cost; infinity where there is no term, capped below infinity where there is one
    std::vector<ClassIndex> order;  // the classes that have a term, children before parents
};

// Knuth's generalisation of Dijkstra's algorithm: classes settle in the order of their least tree cost, smaller terms first among
// equals. `cost_of` replaces the nodes' own costs when given; a negative value forbids the node.
Trees cheapest_trees(const SerializedEGraph& egraph, const std::function<double(NodeIndex)>& cost_of = {});

// A lower bound on the DAG cost of the roots: a term costs at least as much as its costliest path from the root to a leaf.
double path_bound(const SerializedEGraph& egraph);

// Makes a choice whole and acyclic: keeps the wanted nodes wherever they hold together, and takes cheapest trees elsewhere.
std::vector<NodeIndex> acyclic_choice(const SerializedEGraph& egraph, const std::vector<NodeIndex>& wanted);

}  // namespace loopegg
