// The latency of a model on a target, and single runs of a compiled network. The store remembers latencies, so a second question needs no measurement.
#pragma once
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/network/network.hpp"
#include "base/progress.hpp"
#include "extract/measurer.hpp"
#include "graph/graph.hpp"

namespace loopegg {

struct NetworkLatency {
    Latency latency;
    int compiled = 0, timed = 0;  // how much this call had to compile and time
    std::string machine{};        // of a board: where its kernels were timed, and under what conditions
};

// What a compiled network runs, as one term. Networks with equal terms take equally long.
Term network_term(const Graph& graph, const Schedules& schedules, const Target& target);
struct NetworkPlan;
Term network_term(const NetworkPlan& plan);

// For a machine that runs kernel by kernel, such as a board: the sum over the nests, each as `measurer` answers. The sum counts as measured where all
// nests were measured.
Measured sum_of_steps(const Term& network, const Target& target, Measurer& measurer);

// For a machine that cannot be asked: the sum of estimates over the nests. Latency::measured is false.
Latency estimate_network(const Graph& graph, const Schedules& schedules, const Target& target);

// `model` is as load_model takes it, or a folder that compile_network wrote. Throws UserError when there is no way to get the latency.
NetworkLatency measure_model(const std::string& model, const std::string& target, std::uint64_t seed, int rounds, Progress& progress);

// Everything that is counted about a compiled network besides its median: tail latency, throughput, memory, energy, temperature.
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

// One inference of a compiled network, in a process that may do nothing else.
// Inputs and outputs are in the order of network.json. Throws UserError with what became of the process when the folder holds no network, or the network
// crashes.
std::vector<Tensor> run_confined(const std::filesystem::path& folder, std::span<const Tensor> inputs);

}  // namespace loopegg
