// Makes an extraction problem smaller without losing its best answers.
//
// It leaves out nodes that no finite term holds, what the roots do not reach, nodes that need their own class, nodes that another node of
// their class beats (it costs no more and needs nothing more), and nodes too dear to be in any answer below a known cost. A class of one
// node is put into its parents where that counts its cost once.
#pragma once
#include "extract/serialized.hpp"

namespace loopegg {

struct Reduced {
    SerializedEGraph egraph;               // children sorted, each once; ids and operators left empty
    std::vector<NodeIndex> origin;         // by node of `egraph`
    std::vector<ClassIndex> class_origin;  // by class of `egraph`
    std::vector<NodeIndex> forced;         // by class of the original: the node of a class that was put in its parents' place
    // By class: the classes that every finite term of it holds, itself too, sorted. Empty when too many to keep.
    std::vector<std::vector<ClassIndex>> needs;

    // A choice over the reduced problem as one over the original; no_index where it says nothing.
    std::vector<NodeIndex> expand(const std::vector<NodeIndex>& choice) const;
    // A choice over the original as one over the reduced problem; no_index where its node is gone.
    std::vector<NodeIndex> restrict(const std::vector<NodeIndex>& choice) const;
};

// `known_cost`: the DAG cost of some choice that the caller has; answers that cost more may be lost, equal ones are kept.
Reduced reduce(const SerializedEGraph& egraph, double known_cost);

}  // namespace loopegg
