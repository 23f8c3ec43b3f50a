// The smallest term of every class of a live e-graph, found in place: for e-graphs too large to copy.
#pragma once
#include "egraph/egraph.hpp"

namespace loopegg {

class SmallestTerms {
public:
    explicit SmallestTerms(const EGraph& graph);

    double size(ClassId c) const { return size_[graph_.find(c)]; }  // operators, shared ones counted each time; infinite where there is no finite term
    // Throws UserError when there is no finite term. Equal parts are one shared Term.
    Term term(ClassId c) const;

private:
    double size_of(const NodeView& node) const;

    const EGraph& graph_;
    std::vector<double> size_;  // by canonical class
};

}  // namespace loopegg
