// A copy of a live e-graph as the plain data that extraction works on, with the way back.
#pragma once
#include <functional>
#include <span>

#include "egraph/egraph.hpp"
#include "extract/serialized.hpp"

namespace loopegg {

struct EGraphCopy {
    SerializedEGraph egraph;
    std::vector<ClassId> class_of;     // by class of the copy
    std::vector<NodeId> node_of;       // by node of the copy
    std::vector<ClassIndex> index_of;  // by canonical ClassId; no_index where the class was not copied
};

// What one node costs by itself; a negative cost leaves the node out.
using NodeCost = std::function<double(const NodeView&)>;

// Copies the classes that `roots` reach through nodes that are kept, and makes `roots` the roots of the copy. Without roots it copies all classes,
// and the copy has no root. A class that loses all its nodes is left out, and with it the nodes that need this class. The e-graph must be
// rebuilt. Ids are numbers: class "12" has the nodes "12.0", "12.1", ...
EGraphCopy copy_of(const EGraph& graph, std::span<const ClassId> roots = {}, const NodeCost& cost = {});

}  // namespace loopegg
