// Rules on single sites, tried from a network that may still lose something, where the network that the search found may not.
#pragma once
#include <string>

#include "optimize/whole_networks.hpp"

namespace loopegg {

struct SiteTrial {
    Input network;     // where the rules started; all sites but some of the slowest kind are kept
    std::string from;  // the name of that network among the finalists, or "original"
    ClassRules rules;
    Discovery found;
    Tuning tuning;
    double ms = 0;         // of the network with the variants that pay, from its time in turns and the times of its sites
    double beside_ms = 0;  // of the network that the search found, in the same turns
    bool pays() const { return ms < beside_ms; }
};

// Whether the guard lets a network lose more.
bool has_room(const NetworkVerdict& verdict);

// Expects a best network without room.
SiteTrial try_sites(const OptimizeRequest& request, const Input& read, const WholeNetworks& networks, CapacityOracle& oracle, const Timing& timing,
                    Progress& progress);

// result.json's "site_trial".
nlohmann::json site_trial_json(const SiteTrial& trial);

}  // namespace loopegg
