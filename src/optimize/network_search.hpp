// Finds the fastest network that the guard allows as a whole. What single sites lose does not add up to what the network
// loses, so the guard is asked about whole networks.
#pragma once
#include "optimize/stages.hpp"

namespace loopegg {

// Fills the front, the calibration and the chosen network of a selection whose options are known. Throws UserError when
// the guard refuses every network within the limits.
void search_networks(Selection& selection, const ChoiceLimits& limits, const Input& input, const Discovery& found, CapacityOracle& oracle, Progress& progress);

}  // namespace loopegg
