// Carries trained weights from a network to a variant of it: what the variant keeps is a subset of what was there, so it is cut out.
#pragma once
#include <cstdint>

#include "graph/graph.hpp"

namespace loopegg {

// Weights for `to`, tensor by tensor name. A convolution's values are found by output channel, input channel and kernel place, whatever its
// groups, kernel and padding have become; fewer channels are the same ones wherever they are written or read (channel_maps.hpp); entries outside
// a domain are zero. A tensor that `from` did not have (a node that a rule added) is drawn from the seed.
Weights carry_weights(const Graph& from, const Weights& weights, const Graph& to, std::uint64_t seed = 0);

}  // namespace loopegg
