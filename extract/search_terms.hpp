// The k best distinct terms of an e-class under a cost that need not be a sum: an estimate of the whole term, a learned model, a measured time.
//
// A class may hold millions of terms. Where they are few, the search asks about all. Else it asks about some: about every node of the root with the best
// known rest, about some terms that are drawn at random, and then about every term that differs in one choice from the best so far. The parts of good terms
// become the rest that other nodes are tried with.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "extract/best_terms.hpp"

namespace loopegg {

// One cost for each term, in order, however that is found out; infinite where a term may not be taken.
using TermCost = std::function<std::vector<double>(std::span<const Term>)>;

struct TermSearch {
    std::size_t evaluations = 2000;  // terms whose cost is asked for, at most
    std::size_t together = 64;       // terms of one question, so that measured costs are measured side by side
    double drawn = 0.15;             // share of the evaluations that is drawn at random, so that no first choice decides all
    std::uint64_t seed = 1;
};

struct FoundTerms {
    std::vector<RankedTerm> best;  // cheapest first, at most k; the one that was asked first among equals
    std::size_t evaluated = 0;
    bool complete = false;  // every term of the class was asked about
};

// The e-graph must be congruent (term_space.hpp). Terms that go around a cycle the long way are left out.
FoundTerms search_terms(const SerializedEGraph& egraph, ClassIndex root, std::size_t k, const TermCost& cost, const TermSearch& options = {});

}  // namespace loopegg
