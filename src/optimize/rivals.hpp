// Other people's searches over the same networks, to compare ours with.
#pragma once
#include "optimize/shape_search.hpp"

namespace loopegg {

// The networks that a rival chooses from, who judges them, and the clock that estimates their times.
struct JudgedSpace {
    const ShapeSpace& space;
    NetworkJudge& judge;
    const SiteClock& clock;
};

// The search of Turner et al. (ASPLOS 2021). Every layer is left alone, grouped or narrowed at random. The judge goes by Fisher Potential: a network that
// scores lower than the original is not legal. All networks that were asked about are returned.
std::vector<NetworkCandidate> random_configurations(const JudgedSpace& judged, const ShapeSearchOptions& options, Progress& progress);

// BlockSwap (Turner et al., ICLR 2020). Every block becomes one of a menu (grouped, bottlenecked, both) at random, under a budget of time
// (options.max_ms). The network with the largest Fisher Potential is wanted, and comes first.
std::vector<NetworkCandidate> block_swaps(const JudgedSpace& judged, const ShapeSearchOptions& options, Progress& progress);

}  // namespace loopegg
