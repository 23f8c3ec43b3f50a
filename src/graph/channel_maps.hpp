// Which channel of a network is which channel of another network that was made from it by leaving channels out.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "graph/streams.hpp"

namespace loopegg {

// For each channel of the narrower network: which channel of the other network it was, or -1 where it is new. Empty where that cannot be told.
struct ChannelMap {
    std::vector<std::int64_t> outputs, inputs;  // a flattened input has one entry for each value of a channel
};

// How much each channel of a stream of `from` matters. The channels with the largest worth are kept. An empty function keeps the first channels.
using ChannelWorth = std::function<std::vector<double>(const Stream& stream)>;

// One map for each node of `to` that `from` has too. Every writer and every reader of a stream agrees on what was kept.
// Grouped convolutions keep as many channels of each group.
std::map<std::string, ChannelMap> channel_maps(const Graph& from, const Graph& to, const ChannelWorth& worth = {});

}  // namespace loopegg
