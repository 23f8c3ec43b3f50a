// The rules that span sites, applied to one value: batch norms, activations and additions that follow a site become a part of it.
//
// These are the rules of rules/fusion.rules, one function each, for the compiler of networks, which must not know the rule language. A test
// holds the two against each other. No e-graph is grown, because the fused value is the only one that is wanted.
#pragma once
#include <string>
#include <vector>

#include "base/term.hpp"

namespace loopegg {

struct FusionStep {
    std::string rule;
    Term value;          // after it
};

// What the rules do to a VALUE, one after another until none applies.
std::vector<FusionStep> fuse(const Term& value);

// What rules ask of a statement, in this order. It is a convolution with nothing after it but its own bias. It sums products with weights and has
// nothing after it. It does so with anything after it. It is more than a function of each element.
bool is_convolution(const Term& stmt);
bool is_weighted_sum(const Term& stmt);
bool has_weights(const Term& stmt);
bool is_beyond_map(const Term& stmt);
bool is_epilogue_function(const std::string& word);   // may stand in (map F ...) and in (epilogue F ...) alike

}  // namespace loopegg
