// Compiles the chosen network and the original with the same effort and measures both end to end, interleaved.
#pragma once
#include "optimize/run/objective.hpp"
#include "optimize/run/run.hpp"
#include "optimize/search/find_networks.hpp"
#include "optimize/tune/tuning.hpp"

namespace loopegg {

struct Confirmed {
    NetworkRecord original, optimized;
    bool keep_original = false;
    std::string why;
};

// A network with its last tuning.
struct TunedNetwork {
    const Network& network;
    const Tuning& tuning;
    double lost = 0;  // points of accuracy that it is expected to lose, or lost in training
};

// `chosen`: none where no network is better than the original.
Confirmed confirm(const Run& run, const TunedNetwork& original, const std::optional<TunedNetwork>& chosen, const Effort& layouts);

}  // namespace loopegg
