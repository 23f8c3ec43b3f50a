// Other people's searches over the same networks, to hold ours against.
#pragma once
#include "optimize/shape_search.hpp"

namespace loopegg {

// As in Turner et al. (ASPLOS 2021): every layer is left alone, grouped or narrowed at random; what scores a lower Fisher Potential than the original
// is not legal. `paper` judges by that. All that were asked about are returned.
std::vector<NetworkCandidate> random_configurations(const ShapeSpace& space, NetworkJudge& paper, const SiteClock& clock, const ShapeSearchOptions& options,
                                                    Progress& progress);

// As BlockSwap (Turner et al., ICLR 2020): every block becomes one of a menu (grouped, bottlenecked, both), at random, under a budget of time
// (options.max_ms); of those, the one with the largest Fisher Potential is wanted. It comes first.
std::vector<NetworkCandidate> block_swaps(const ShapeSpace& space, NetworkJudge& paper, const SiteClock& clock, const ShapeSearchOptions& options,
                                          Progress& progress);

}  // namespace loopegg
