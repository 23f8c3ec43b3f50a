// The weights of a variant from those of the network it came from: what a rule keeps is a slice of what was there.
#pragma once
#include "graph/graph.hpp"

namespace loopegg {

// Weights for `variant` (made from `original` by plans). Nodes are matched by name: a grouped convolution takes its diagonal blocks, a
// narrowed one the first channels of each group, readers of fewer channels their first ones; a node under a domain keeps its dense tensor.
// Tensors that the original does not have (a pointwise restore) are drawn from the seed.
Weights carry_weights(const Graph& original, const Weights& weights, const Graph& variant, std::uint64_t seed = 0);

}  // namespace loopegg
