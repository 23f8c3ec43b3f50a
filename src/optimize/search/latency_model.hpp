// Predicts how long networks take before they are tuned, from the sites and networks that were timed.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.hpp"

namespace loopegg {

// The time of a site comes from timed sites of the same kernel, stride and pixels, each scaled by the work of both. Sites with about as many channels weigh
// most. The time of a network is the sum over its sites, times what whole networks took compared with their sums: so extraction can add up sites.
class LatencyModel {
public:
    // `lanes`: channels that a vector holds. Values are in blocks only where their channels are whole vectors.
    explicit LatencyModel(std::int64_t lanes = 1) : lanes_(lanes) {}

    // Learns from the sites of a network that was tuned: `ms` of each site, with its best schedule.
    void learn(const Graph& network, const std::map<std::string, double>& ms);
    // Learns what is between sites from whole networks that were timed.
    void learn_networks(std::span<const std::pair<const Graph*, double>> networks);

    // What a site adds to the time of its network. `node` knows its shapes.
    double site_ms(const Node& node) const;
    double ms(const Graph& network) const;

private:
    struct Timed {
        double inputs, outputs, groups, ms, macs, written;
        bool restricted, convolution;
    };
    struct Prediction {
        double ms = 0;
        double news = 0;  // how far the site is from every timed site: 0 where such a site was timed, and close to 1 where no site is like it
    };
    static Timed site_of(const Node& node, double ms);
    static Prediction by_neighbours(const Timed& site, const std::vector<Timed>& timed);
    double of_another_kind(const Node& node) const;
    double alone_ms(const Node& node) const;
    bool on_whole_vectors(const Node& node) const;

    std::int64_t lanes_;
    std::map<std::string, std::vector<Timed>> alike_;  // by kernel, stride and pixels; by name where a site is no convolution
    // An extraction looks for sites with a short prediction, so it finds predictions that are too short. How much longer new sites took than their neighbours
    // had said, as a sum over sites: the logarithm by what was new, and the square of what was new. Both are weighted by time.
    double too_short_ = 0, new_ = 0;
    // What a millisecond of a site costs in a network, and how much more where its channels are no whole vectors.
    double in_network_ = 1, broken_vectors_ = 0;
};

}  // namespace loopegg
