#include "optimize/tune/time_networks.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "backends/measure/latency_store.hpp"
#include "backends/measure/network_measure.hpp"
#include "base/scratch.hpp"

namespace loopegg {

// Measures networks side by side. The key of a stored time names the network and the networks that were timed next to it. `make` compiles the networks where
// some time is not known.
std::vector<Measured> measure_interleaved(std::span<Entrant> entrants, const Target& target, Remember which, const std::function<void(Entrant&)>& make) {
    std::vector<Term> networks;
    std::vector<std::filesystem::path> folders;
    for (const Entrant& e : entrants) networks.push_back(network_term(e.graph, e.schedules, target));
    LatencyStore store(default_store());
    std::vector<Hash128> keys;
    std::vector<Measured> times;
    for (std::size_t i = 0; i < networks.size(); ++i) {
        std::vector<Term> order{networks[i]};
        for (std::size_t k = 0; k < networks.size(); ++k)
            if (k != i) order.push_back(networks[k]);
        keys.push_back(latency_key(target, Term("interleaved", std::move(order))));
        if (auto known = store.find(keys[i])) times.push_back(*known);
    }
    if (times.size() == networks.size()) return times;
    for (Entrant& e : entrants) {
        if (make) make(e);
        folders.push_back(e.record.files.folder);
    }
    times = measure_networks(folders);
    const bool quiet = std::all_of(times.begin(), times.end(), [](const Measured& m) { return m.latency && !m.latency->disturbed; });
    for (std::size_t i = 0; (quiet || which == Remember::all) && i < times.size(); ++i)
        times[i] = store.put_or_find(keys[i], target.name, "network in " + folders[i].filename().string(), times[i]);
    return times;
}

std::filesystem::path trying_folder(const Run& run) { return run.request.out / ".loopegg-trying"; }

std::vector<Measured> measure_in_scratch(const Run& run, std::span<Entrant> entrants, KernelCache& kernels, Progress* progress) {
    const ScratchFolder trying(trying_folder(run));
    return measure_interleaved(entrants, run.target, Remember::all, [&](Entrant& e) {
        const std::filesystem::path folder = trying.path() / std::to_string(&e - entrants.data());
        e.record.files = compile_network({e.graph, e.weights, e.schedules}, run.target, folder, progress, &kernels);
    });
}

std::vector<Measured> time_interleaved(const Run& run, std::span<const std::pair<const Network*, const Schedules*>> networks) {
    run.progress.advance(0, fmt::format("timing {} networks, interleaved", networks.size()));
    KernelCache kernels{run.pool};
    std::vector<Entrant> entrants;
    for (const auto& [network, schedules] : networks) entrants.push_back({network->graph, network->weights, *schedules, {}});
    std::vector<Measured> times;
    if (run.timing.network)
        for (const Entrant& e : entrants) times.push_back(run.timing.network(e.graph, e.weights, e.schedules, false));
    else
        times = measure_in_scratch(run, entrants, kernels, &run.progress);
    return times;
}

}  // namespace loopegg
