// Everything that is counted about a compiled network besides its median: tail latency, throughput, memory, energy, temperature.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

namespace loopegg {

struct NetworkProfile {
    double p50_ms = 0, p99_ms = 0;
    int calls = 0;                          // single inferences behind the percentiles
    double throughput_per_s = 0;            // inputs of a batch count one by one; calls back to back
    double peak_memory_mb = 0;              // of a process that does nothing but run this network
    std::optional<double> energy_j{};       // for one inference, of the whole machine
    std::optional<double> temperature_c{};  // at the end
};

// Runs the network in a process of its own for about `seconds`, and times every call by itself. Where the network cannot be run here, gives none and `why`.
std::optional<NetworkProfile> profile_network(const std::filesystem::path& folder, double seconds, std::string& why);

}  // namespace loopegg
