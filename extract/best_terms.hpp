// The k cheapest distinct terms of an e-class, by tree cost (shared parts count every time).
#pragma once
#include <vector>

#include "base/term.hpp"
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

}  // namespace loopegg
