// What a run is asked to improve, and which of two networks is better by that objective.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backends/measure/network_measure.hpp"
#include "backends/network/network.hpp"

namespace loopegg {

enum class Objective { latency, p99, throughput, energy, memory, compile };

const std::vector<std::string>& objective_names();

// Throws UserError for a word that is no objective, and for an objective that nothing here can measure on this target.
Objective objective_for(const std::string& name, const Target& target);

// One network as it was compiled and run.
struct NetworkRecord {
    CompiledNetwork files;
    Measured time;
    std::optional<NetworkProfile> profile{};  // none where the target cannot be run here
    std::map<std::string, Term> nests{};      // by site, the nest that runs, or the VALUE of several
    nlohmann::json rounding{};                // what the guard of roundings says (rounding_guard.hpp); null: no schedule rounds, or none may
};

// The figure that the objective looks at. Smaller is better. None where the figure was not measured.
std::optional<double> figure_of(Objective objective, const NetworkRecord& network);
// "p99 of 3.2 ms", "1.4 MB of weights and activations".
std::string figure_words(Objective objective, const NetworkRecord& network);

}  // namespace loopegg
