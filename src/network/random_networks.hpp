// Networks whose sites were changed by random sequences of neural rules, as the paper of ASPLOS 2021 draws its candidates.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "rules/rule.hpp"

namespace loopegg {

// What was done to a site: the neural rules in their order. Exact rules are between them, and are not named.
struct DrawnSequence {
    std::vector<std::string> rules;
    Term nest;
};

struct DrawnNetwork {
    Graph graph;
    std::map<std::string, DrawnSequence> sites;  // those that were changed
};

// Each distinct nest of the network has an e-graph, grown by the rules of a phase. A sequence is a random walk over the edges of its neural rules: each step
// picks one of the rules that apply, and then one of its applications. Exact rules merge classes, so a walk passes any of their rearrangements on its way.
class RandomNetworks {
public:
    // Throws UserError where no neural rule of the phase applies to any site.
    RandomNetworks(const Graph& original, const RuleBook& book, const Phase& phase, std::uint64_t seed);
    ~RandomNetworks();

    DrawnNetwork draw();

private:
    DrawnNetwork draw_once();
    class Walks;
    double unit() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

    const Graph& original_;
    Term net_;
    std::vector<std::string> changeable_;
    std::map<std::string, std::unique_ptr<Walks>> walks_;  // by nest
    std::map<std::string, const Walks*> walks_of_;         // by site
    std::mt19937_64 random_;
};

}  // namespace loopegg
