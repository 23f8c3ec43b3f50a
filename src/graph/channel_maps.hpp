// Which channels of a network are which of another that was made from it by leaving some out.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "graph/streams.hpp"

namespace loopegg {

// By channel of the narrower network: the channel of the other network that it was, or -1 where it is new. Empty where channels cannot be told.
struct ChannelMap {
    std::vector<std::int64_t> outputs, inputs;  // of a flattened input, each value of a channel by itself
};

// How much each channel of a stream of `from` matters. The channels with the largest values are kept. Where it is empty, the first are kept.
using ChannelWorth = std::function<std::vector<double>(const Stream& stream)>;

// By node of `to` that `from` has too. Every writer and every reader of a stream agrees on what was kept.
// Grouped convolutions keep as many channels of each group.
std::map<std::string, ChannelMap> channel_maps(const Graph& from, const Graph& to, const ChannelWorth& worth = {});

}  // namespace loopegg
