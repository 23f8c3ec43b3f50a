// How long a network takes before it is tuned, by the sites and networks that were timed.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.hpp"

namespace loopegg {

// Estimates how long a network takes before it is tuned. The time of a site comes from timed sites of the same kernel, stride and pixels, each scaled by
// the work of both. Sites with about as many channels weigh most.
class SiteClock {
public:
    // `lanes`: channels that a vector holds. Values lie in blocks only where their channels are whole vectors.
    explicit SiteClock(std::int64_t lanes = 1) : lanes_(lanes) {}
    // Learns from the sites of a network that was tuned: `ms` of each site, with its best schedule.
    void learn(const Graph& network, const std::map<std::string, double>& ms);
    // Learns from whole networks that were timed, because what lies between the sites takes time too, and because neighbours agree on blocks of channels.
    // For an estimate, networks of about the same time weigh most, with about as much work on whole vectors of channels.
    void learn_whole(std::span<const std::pair<const Graph*, double>> networks);
    double ms(const Graph& network) const;

private:
    struct Timed {
        double inputs, outputs, groups, ms, macs, written;
    };
    static Timed site_of(const Graph& network, const Node& node, double ms);
    struct Estimate {
        double ms = 0;
        double news = 0;  // how far the site is from every timed site: 0 where such a site was timed, and close to 1 where no site is like it
    };
    static Estimate by_neighbours(const Timed& site, const std::vector<Timed>& timed);
    double sites_ms(const Graph& network) const;
    double on_whole_vectors(const Graph& network) const;  // the share of the work

    std::int64_t lanes_;
    std::map<std::string, std::vector<Timed>> alike_;  // by kernel, stride and pixels; by name where a site is no convolution
    // The search looks for networks with a short estimate, so it finds estimates that are too short. How much longer new sites took than their neighbours
    // had said, as a sum over sites: the logarithm by what was new, and the square of what was new. Both are weighted by time.
    double too_short_ = 0, new_ = 0;
    struct Whole {
        double sites_ms, on_whole_vectors, ms;
    };
    std::vector<Whole> wholes_;  // timed networks; `sites_ms` is the sum of a network's sites
};

}  // namespace loopegg
