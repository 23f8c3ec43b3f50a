// The stage that searches whole networks. The guard judges them, and the best are tuned and timed in turns with naive scalings and the original.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "optimize/shape_search.hpp"
#include "optimize/stages.hpp"

namespace loopegg {

// 'rules' uses the network rules of the rule file, then rules on single sites. 'sites' uses rules on single sites alone. The others are rivals under the
// same tuning: 'scale' (naive scalings alone), 'random' (the fastest of random restrictions of single layers that the paper's guard lets through) and
// 'blockswap' (a menu of blocks, chosen by Fisher Potential).
const std::vector<std::string>& search_names();

struct TimedNetwork {
    std::size_t candidate = 0;  // into WholeNetworks::judged
    Input input;                // the network, with the weights carried over
    Tuning tuning;
    Schedules schedules;
    Measured time;  // of the whole network, taken in turns with the others
};

struct WholeNetworks {
    std::vector<NetworkCandidate> judged;
    std::vector<TimedNetwork> timed;
    Tuning original_tuning;
    Measured original;                // taken in turns with `timed`
    std::optional<std::size_t> best;  // into `timed`: the network to go on from; none: the original
    std::int64_t asked = 0;           // questions to the guard
};

// Throws UserError for a search that does not exist.
WholeNetworks find_networks(const OptimizeRequest& request, const Input& input, CapacityOracle& oracle, const Timing& timing, const KernelShelf& shelf,
                            Progress& progress);

// The proof of the steps that made a timed network from the network that was read (network_proof.hpp).
nlohmann::json proof_of(const OptimizeRequest& request, const Input& read, const WholeNetworks& networks, std::size_t timed);

// result.json's "networks": what was judged, timed and chosen.
nlohmann::json networks_json(const WholeNetworks& networks);

}  // namespace loopegg
