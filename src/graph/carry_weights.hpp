// Carries trained weights from a network to a smaller form of it. The smaller network keeps a part of each tensor, and that part is cut out.
#pragma once
#include <cstdint>

#include "graph/channel_worth.hpp"
#include "graph/graph.hpp"

namespace loopegg {

// Weights for `to`, tensor by tensor name. A convolution's values are found by output channel, input channel and kernel place, whatever its
// groups, kernel and padding have become. Where channels are fewer, the same ones are kept wherever they are written or read (channel_maps.hpp).
// Entries outside a domain are zero. A tensor that `from` did not have (of a node that a rule added) is drawn from the seed.
// `worth` says how much each channel of a stream counts (channel_worth.hpp), and those that count most are kept; without it, the first ones.
Weights carry_weights(const Graph& from, const Weights& weights, const Graph& to, std::uint64_t seed = 0, const ChannelWorth& worth = {});

}  // namespace loopegg
