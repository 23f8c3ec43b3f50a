// The k cheapest distinct terms of an e-class, by tree cost (shared parts count every time).
#pragma once
#include <vector>

#include "base/term.hpp"
#include "egraph/egraph.hpp"
#include "extract/serialized.hpp"

namespace loopegg {

struct RankedTerm {
    Term term;  // empty where the term would be written with more than `longest_term` operators: shared parts make terms exponentially long
    double cost, size;
};
constexpr double longest_term = 20'000;

// The cheapest terms come first, and smaller terms first among equals. There are fewer than k when the class has fewer. Cycles do no harm,
// because a term that goes around a cycle is larger than the same term without the detour.
std::vector<RankedTerm> best_terms(const SerializedEGraph& egraph, ClassIndex root, std::size_t k);

// The smallest term of every class of a live e-graph, found in place: for e-graphs too large to copy.
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
