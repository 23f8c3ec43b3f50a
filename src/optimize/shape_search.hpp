// A search over whole networks: what is judged and chosen is the network. Naive scalings of the original are always among the candidates.
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "optimize/judge_networks.hpp"
#include "optimize/shape_space.hpp"

namespace loopegg {

// How long a network takes, before it is tuned: each site as long as it does in the original, by the work that is left of it.
class SiteClock {
public:
    // `ms` of each site of the original, with its best schedule.
    SiteClock(const Graph& original, const std::map<std::string, double>& ms);
    double ms(const Graph& network) const;

private:
    struct Tick { double ms, macs, outputs; };
    std::map<std::string, Tick> by_site_;
};

struct NetworkCandidate {
    std::string origin;        // original; width, depth, both: naive scalings; rules: the search's own; random, blockswap: rivals
    NetworkShape shape;
    Graph graph;
    NetworkVerdict judged;
    double ms = 0;             // by the clock, until it is tuned
    bool naive() const { return origin == "width" || origin == "depth" || origin == "both"; }
};

struct ShapeSearchOptions {
    std::int64_t budget = 160;       // networks that the guard may be asked about, naive scalings among them
    std::uint64_t seed = 1;
    double max_ms = std::numeric_limits<double>::infinity();   // given: the network that loses least and takes no longer, not the fastest that is allowed
};

// Which of two candidates to prefer: smaller is better.
double fitness(const NetworkCandidate& candidate, double max_ms);

// Everything that was judged, in the order in which it was. Same seed, same answer.
std::vector<NetworkCandidate> search_shapes(const ShapeSpace& space, NetworkJudge& judge, const SiteClock& clock, const ShapeSearchOptions& options, Progress& progress);

// Uniform width, uniform depth, and both, from a little less to a quarter.
std::vector<std::pair<std::string, NetworkShape>> naive_scalings(const ShapeSpace& space);

// The best of every naive kind, allowed or not, and the `most` best of the others that are allowed. Indices into `all`, the best first.
std::vector<std::size_t> finalists(const std::vector<NetworkCandidate>& all, std::size_t most, double max_ms = std::numeric_limits<double>::infinity());

}  // namespace loopegg
