// The question that a neural rule asks before it may be used: does this changed network keep what the original can learn?
//
// The rule language knows the oracle by this interface alone. fisher/ answers it on LibTorch, and tests answer it with arithmetic.
#pragma once
#include <span>
#include <vector>

#include "base/verdict.hpp"
#include "graph/graph.hpp"

namespace loopegg {

class CapacityOracle {
public:
    virtual ~CapacityOracle() = default;

    // Gives one verdict for each variant, in order. The variants are `original` after neural rules: the same nodes by name, some of them
    // restricted (Node::domain, or normalised to ordinary attributes). Questions come in batches, because the original is scored once.
    virtual std::vector<Verdict> judge(const Graph& original, std::span<const Graph> variants) = 0;

    // An upper bound on the share of capacity that each variant keeps, from sizes alone and without running a network. Empty where sizes tell nothing.
    virtual std::vector<double> kept_by_size(const Graph& /*original*/, std::span<const Graph> /*variants*/) { return {}; }
};

}  // namespace loopegg
