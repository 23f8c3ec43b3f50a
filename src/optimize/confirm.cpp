// Compiles the chosen network and the original with the same effort and measures both end to end, side by side.
#include <fmt/format.h>

#include "backends/network_measure.hpp"
#include "backends/target.hpp"
#include "graph/carry_weights.hpp"
#include "optimize/stages.hpp"

namespace loopegg {
namespace {

Schedules schedules_of(const Sites& sites, const Tuning& tuning, const std::vector<std::size_t>& variant) {
    Schedules schedules;
    for (std::size_t s = 0; s < sites.all.size(); ++s)
        if (const TunedNest& t = tuning.best[variant[s]]; t.best.latency) schedules[sites.all[s].name] = t.nest;
    return schedules;
}

// A network on its way to being measured.
struct Entrant {
    const Graph& graph;
    const Weights& weights;
    Schedules schedules;
    CompiledNetwork files;
};

// Side by side where the machine can be asked; estimates, which say so, where not.
std::vector<Measured> times_of(std::span<const Entrant> entrants, const Target& target) {
    std::vector<std::filesystem::path> folders;
    for (const Entrant& e : entrants) folders.push_back(e.files.folder);
    if (target.reach == Reach::here) return measure_networks(folders);
    std::vector<Measured> out;
    for (const Entrant& e : entrants) out.push_back({estimate_network(e.graph, e.weights, e.schedules, target), ""});
    return out;
}

}  // namespace

Confirmed confirm(const OptimizeRequest& request, const Input& input, const Tuning& tuning, const Selection& selection, Progress& progress) {
    const Target target = find_target(request.target);
    const std::vector<std::size_t> original = original_variants(input.sites);
    const bool changed = selection.chosen.variant != original;
    const Weights weights = changed ? carry_weights(input.graph, input.weights, selection.chosen.graph, request.seed) : Weights{};
    std::vector<Entrant> entrants;
    auto enter = [&](const Graph& graph, const Weights& w, const std::vector<std::size_t>& variant, const char* folder) {
        Entrant e{graph, w, schedules_of(input.sites, tuning, variant), {}};
        e.files = compile_network(graph, w, e.schedules, target, request.out / folder, &progress);
        entrants.push_back(std::move(e));
    };
    enter(input.graph, input.weights, original, "original");
    if (changed) enter(selection.chosen.graph, weights, selection.chosen.variant, "optimized");
    const std::vector<Measured> times = times_of(entrants, target);

    Confirmed c;
    c.original_files = entrants.front().files, c.optimized_files = entrants.back().files;
    c.original = times.front(), c.optimized = times.back();
    if (!changed) c.keep_original = true, c.why = "no site has a variant that is both faster and admitted by the guard: the original is returned";
    else if (!c.optimized.latency) c.keep_original = true, c.why = "the chosen network could not be measured (" + c.optimized.why + "): the original is returned";
    else if (c.original.latency && c.optimized.latency->median_ms >= c.original.latency->median_ms)
        c.keep_original = true, c.why = fmt::format("the chosen network takes {:.3f} ms and the original {:.3f} ms: the original is returned",
                                                    c.optimized.latency->median_ms, c.original.latency->median_ms);
    return c;
}

}  // namespace loopegg
