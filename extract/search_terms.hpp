// The k best distinct terms of an e-class under a cost that need not be a sum: an estimate of the whole term, a learned model, a measured time.
//
// A class may hold millions of terms. Where there are few, the search asks for the cost of all. Else it asks about every node of the root class, completed
// with the best known terms below it, then about terms that are drawn at random, and then about every term that differs in one choice from the best so far.
// The parts of good terms become the best known terms by which other nodes are completed.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "extract/best_terms.hpp"

namespace loopegg {

// Gives one cost for each term, in order; infinite for a term that may not be taken.
using TermCost = std::function<std::vector<double>(std::span<const Term>)>;

struct TermSearch {
    std::size_t evaluations = 2000;  // terms whose cost is asked for, at most
    std::size_t together = 64;       // terms of one question, so that measured costs are measured side by side
    double drawn = 0.15;             // share of the evaluations that is drawn at random, so that no first choice decides all
    std::uint64_t seed = 1;
};

struct FoundTerms {
    std::vector<RankedTerm> best;  // cheapest first, at most k; among equals, the term that was asked about first
    std::size_t evaluated = 0;
    bool complete = false;  // every term of the class was asked about
};

// The e-graph must be congruent (term_space.hpp). Terms that go around a cycle are left out: only direct terms (SpaceLimits::direct) count.
FoundTerms search_terms(const SerializedEGraph& egraph, ClassIndex root, std::size_t k, const TermCost& cost, const TermSearch& options = {});

}  // namespace loopegg
