// The question that a neural rule asks before it may be used: does this changed network keep what the original can learn?
//
// The rule language knows the oracle by this interface alone. fisher/ answers it on LibTorch, and tests answer it with arithmetic.
#pragma once
#include <span>
#include <vector>

#include "base/verdict.hpp"
#include "graph/graph.hpp"
#include "rules/measure.hpp"

namespace loopegg {

class CapacityOracle {
public:
    virtual ~CapacityOracle() = default;

    // Gives one verdict for each variant, in order: whether all conditions hold. The variants are `original` after neural rules: the same nodes by name, some
    // of them restricted (Node::domain, or normalised to ordinary attributes). Questions come in batches, because the original is scored once.
    virtual std::vector<Verdict> judge(const Graph& original, std::span<const Graph> variants, std::span<const MeasureCondition> conditions) = 0;

    // The same from sizes alone, without running a network, of the conditions that are formulas of sizes.
    virtual std::vector<Verdict> judge_by_size(const Graph& original, std::span<const Graph> variants, std::span<const MeasureCondition> conditions) = 0;
};

}  // namespace loopegg
