// The question that a neural rule asks before it may be used: does this changed network keep what the original can learn?
//
// The rule language knows the oracle by this interface alone; fisher/ answers it on LibTorch, tests answer it with arithmetic.
#pragma once
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "graph/graph.hpp"

namespace loopegg {

// What a guard answers. A refusal is a value with its reason, never an exception.
struct Verdict {
    bool allowed = false;
    std::string why;            // one line for a report: "score 0.71 of the original, below 0.85"
    nlohmann::json evidence{};  // what the answer rests on (oracle, seeds, scores, threshold), kept for the checker to replay
};

class CapacityOracle {
public:
    virtual ~CapacityOracle() = default;

    // One verdict per variant, in order. The variants are `original` after neural rules: the same nodes by name, some of them
    // restricted (Node::domain, or normalised to ordinary attributes). Asked in batches, because the original is scored once.
    virtual std::vector<Verdict> judge(const Graph& original, std::span<const Graph> variants) = 0;
};

}  // namespace loopegg
