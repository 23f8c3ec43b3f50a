// A search over whole networks: it judges and chooses networks, not sites. Naive scalings of the original are always among the candidates.
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "optimize/judge_networks.hpp"
#include "optimize/shape_space.hpp"
#include "optimize/site_clock.hpp"

namespace loopegg {

struct NetworkCandidate {
    std::string origin;  // original; width, depth, both: naive scalings; rules: the search's own; random, blockswap: rivals
    NetworkShape shape;
    Graph graph;
    NetworkVerdict judged;
    double ms = 0;  // estimated by the clock while the search goes on
    bool timed = false;
    double foretold_ms = 0;  // the clock's last estimate before the network was tuned
    double crowding = 0;     // how much worse the network ranks because a network like it was timed, as a share (ShapeSearchOptions::spread)
    bool naive() const { return origin == "width" || origin == "depth" || origin == "both"; }
};

struct ShapeSearchOptions {
    std::int64_t budget = 96;  // networks that the guard may be asked about, naive scalings among them
    std::uint64_t seed = 1;
    double max_ms = std::numeric_limits<double>::infinity();  // if finite: the search wants the network that loses least among those that take no longer
    // How much worse a network ranks, as a share, when the search has already timed an equal one; an unlike network ranks as it is. The guard and the clock err
    // alike on networks that are alike. So a user who trains several finalists learns most from finalists that are unlike.
    double spread = 0;
};

// Which of two candidates to prefer: smaller is better.
double fitness(const NetworkCandidate& candidate, double max_ms);

// Naive scalings first, then networks bred from the best ones. Breeding looks at many networks by the clock and by their sizes, and asks the guard
// about the best of them. Same seed, same answer.
class ShapeSearch {
public:
    ShapeSearch(const ShapeSpace& space, NetworkJudge& judge, const SiteClock& clock, const ShapeSearchOptions& options, Progress& progress);
    ~ShapeSearch();

    // Asks about at most `asks` networks, and never about more than the budget.
    void go_on(std::int64_t asks);
    // The clock has learned: every network is estimated again.
    void set_the_clock();
    // The original was timed again: options.max_ms is another.
    void allow_ms(double max_ms);
    // All networks that were judged, in the order of judging.
    std::vector<NetworkCandidate>& judged();

private:
    class Breeder;
    std::unique_ptr<Breeder> breeder_;
};

// Uniform width, uniform depth, and both, from a little less to a quarter.
std::vector<std::pair<std::string, NetworkShape>> naive_scalings(const ShapeSpace& space);

// The best of every naive kind, allowed or not, and the `most` best of the other networks that are allowed, without networks that were timed already.
// Gives indices into `all`, the best first.
std::vector<std::size_t> finalists(const std::vector<NetworkCandidate>& all, std::size_t most, double max_ms = std::numeric_limits<double>::infinity());

}  // namespace loopegg
