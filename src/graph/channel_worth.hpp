// How much each channel of a network is worth. A smaller form of the network keeps the channels that are worth most.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "graph/streams.hpp"

namespace loopegg {

// Which channel of a network is which channel of another network that was made from it by leaving channels out.

// For each channel of the narrower network: which channel of the other network it was, or -1 where it is new. Empty where that cannot be determined.
struct ChannelMap {
    std::vector<std::int64_t> outputs, inputs;  // a flattened input has one entry for each value of a channel
};

// How much each channel of a stream of `from` matters. The channels with the largest worth are kept. An empty function keeps the first channels.
using ChannelWorth = std::function<std::vector<double>(const Stream& stream)>;

// One map for each node of `to` that `from` has too. Every writer and every reader of a stream agrees on what was kept.
// Grouped convolutions keep as many channels of each group.
std::map<std::string, ChannelMap> channel_maps(const Graph& from, const Graph& to, const ChannelWorth& worth = {});

// By site, one number for each channel that the site writes; no number is negative.
using SiteScores = std::map<std::string, std::vector<double>>;

// The magnitude of trained weights: the norm of the weights that write a channel times the scale of the batch norm that follows, as a share of the site's
// sum, so that every site counts alike.
SiteScores weight_magnitudes(const Graph& graph, const Weights& weights);

// A channel is worth the sum of what its writers score. A stream none of whose writers has a score keeps its first channels.
ChannelWorth summed_over_writers(SiteScores scores);

// The share of a network's worth that a smaller form of it keeps, between 0 and 1.
struct KeptWorth {
    double channels = 1;  // the mean over streams that both networks have
    double branches = 1;  // of what the last sites of all branches score together; 1 where there are no branches
};
KeptWorth kept_worth(const Graph& from, const SiteScores& scores, const Graph& to);

}  // namespace loopegg
