// A whole network compiled for one target: one shared library with a plain C entry point, its weights next to it, its memory planned.
#pragma once
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "backends/target/target.hpp"
#include "base/progress.hpp"
#include "base/term.hpp"
#include "extract/measurer.hpp"
#include "graph/graph.hpp"

namespace loopegg {

// By node name: the NEST of a site, or the VALUE (prepare HOW ROW) that a rule made from the site (rules/algorithms.rules), which is several nests in a
// row. compile_network uses the schedules of these nests. It fuses batch norms, biases, activations and additions that follow a site into the site, or
// into the last nest of its row. A site without an entry gets default_nest.
using Schedules = std::map<std::string, Term>;

// A whole network as it is compiled.
struct ScheduledNetwork {
    const Graph& graph;
    const Weights& weights;
    const Schedules& schedules;
};

struct CompiledNetwork {
    std::filesystem::path folder;  // network.so | network.o, network.h, weights.bin, network.json, the sources
    std::string target;
    int kernels = 0, steps = 0;  // distinct kernels; launches in one inference
    std::int64_t arena_bytes = 0, weight_bytes = 0;
    double seconds = 0;  // processor time of compiling the kernels, even if they were compiled before, and the time of putting them together
    bool linked = true;  // false: there is no C compiler for this target here, so there are objects and sources and no network.so
};

class KernelCache;

// Throws UserError where this network cannot be put together here for this target.
void require_linkable(const Graph& graph, const Target& target);

// Writes everything into `folder`, which has no network in it yet. Throws UserError that names the site when a schedule cannot be lowered.
CompiledNetwork compile_network(const ScheduledNetwork& network, const Target& target, const std::filesystem::path& folder, Progress* progress = nullptr,
                                KernelCache* cache = nullptr);

// What each site is compiled as when everything that can be fused is fused: its nest, which is the nest to tune, or the VALUE of several nests.
std::map<std::string, Term> fused_nests(const Graph& graph, const Schedules& schedules, const Target& target);

// The inputs and outputs of a compiled network, by its network.json. read_ports throws UserError when the folder holds no compiled network.
struct NetworkPorts {
    std::vector<GraphInput> inputs, outputs;
    std::size_t steps = 0;
    std::string architecture;
    std::string prefix;  // of the names in network.h
};
NetworkPorts read_ports(const std::filesystem::path& folder);

// A network that was compiled before, with other weights: the same steps and, byte for byte, the same kernels.
// Compiles into `to`, which has no network in it yet, what was compiled into `from`. `graph` is the network of `from`. Throws UserError where `from` does not
// hold all that is needed.
CompiledNetwork recompile(const std::filesystem::path& from, const Graph& graph, const Weights& weights, const std::filesystem::path& to,
                          Progress* progress = nullptr);

// A network loaded into this process, with a context of its own. Inputs and outputs are in the order of the graph.
class LoadedNetwork {
public:
    explicit LoadedNetwork(const std::filesystem::path& folder, int threads = 0);
    ~LoadedNetwork();
    LoadedNetwork(const LoadedNetwork&) = delete;
    LoadedNetwork& operator=(const LoadedNetwork&) = delete;

    const std::vector<GraphInput>& inputs() const { return ports_.inputs; }
    const std::vector<GraphInput>& outputs() const { return ports_.outputs; }
    std::vector<Tensor> run(std::span<const Tensor> inputs);
    void run(std::span<const float* const> inputs, std::span<float* const> outputs);                       // no copies, for timing
    std::vector<double> run_steps(std::span<const float* const> inputs, std::span<float* const> outputs);  // milliseconds of each step

private:
    void* entry(const char* name) const;  // of the library, by its name without the prefix
    void refuse_missing_units(const std::filesystem::path& folder) const;
    bool agrees_with_its_manifest() const;
    void close();

    NetworkPorts ports_;
    void* library_ = nullptr;
    void* network_ = nullptr;
    void* context_ = nullptr;
};

// Times of whole networks, each in a process of its own, interleaved so that a disturbance hits all of them.
std::vector<Measured> measure_networks(std::span<const std::filesystem::path> folders, int rounds = 15);

// The time of every step (the lower quartile) of each network, in the order of "steps" in its network.json, also taken in turns. Empty for a network
// that cannot be run.
std::vector<std::vector<double>> measure_steps(std::span<const std::filesystem::path> folders, int rounds = 5);

}  // namespace loopegg
