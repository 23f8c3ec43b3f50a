// Carries trained weights from a network to a variant of it: what the variant keeps is a subset of what was there, so it is cut out.
#pragma once
#include <cstdint>

#include "graph/graph.hpp"

namespace loopegg {

// Weights for `to`, tensor by tensor name. A convolution's values are found by output channel, input channel and kernel place, whatever its
// groups, kernel and padding have become; fewer channels are the same ones wherever they are written or read (channel_maps.hpp); entries outside
// a domain are zero. A tensor that `from` did not have (a node that a rule added) is drawn from the seed.
// `keep`: which channels of a stream are left where there are fewer. The first; or, of trained weights, those whose weights are largest where they are
// written, over all writers of the stream alike.
enum class KeepChannels { first, largest };
Weights carry_weights(const Graph& from, const Weights& weights, const Graph& to, std::uint64_t seed = 0, KeepChannels keep = KeepChannels::first);

}  // namespace loopegg
