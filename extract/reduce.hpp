// Makes an extraction problem smaller without losing its best answers.
//
// reduce() leaves out nodes that no finite term holds, classes that the roots do not reach, nodes that need their own class, nodes that are worse than
// another node of their class (which costs no more and needs nothing more), and nodes too dear to be in any answer below a known cost. A class of one
// node is merged into its parents where the cost of that node still counts once.
#pragma once
#include "extract/serialized.hpp"

namespace loopegg {

struct Reduced {
    SerializedEGraph egraph;               // children sorted, each once; ids and operators left empty
    std::vector<NodeIndex> origin;         // by node of `egraph`
    std::vector<ClassIndex> class_origin;  // by class of `egraph`
    std::vector<NodeIndex> forced;         // by class of the original: the node of a class that was merged into its parents
    // By class: the classes that every finite term of the class holds, the class itself too, sorted. Empty when there are too many to keep.
    std::vector<std::vector<ClassIndex>> needs;

    // Turns a choice over the reduced problem into one over the original; no_index where the choice says nothing.
    std::vector<NodeIndex> expand(const std::vector<NodeIndex>& choice) const;
    // Turns a choice over the original into one over the reduced problem; no_index where the chosen node was left out.
    std::vector<NodeIndex> restrict(const std::vector<NodeIndex>& choice) const;
};

// `known_cost`: the DAG cost of some choice that the caller has; answers that cost more may be lost, equal ones are kept.
Reduced reduce(const SerializedEGraph& egraph, double known_cost);

}  // namespace loopegg
