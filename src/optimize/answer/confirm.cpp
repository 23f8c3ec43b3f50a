#include "optimize/answer/confirm.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "backends/kernel/kernel_cache.hpp"
#include "backends/measure/network_measure.hpp"
#include "base/atomic_directory.hpp"
#include "base/error.hpp"
#include "optimize/answer/rounding_guard.hpp"
#include "optimize/tune/layouts.hpp"
#include "optimize/tune/time_networks.hpp"
#include "optimize/tune/tuning.hpp"

namespace loopegg {
namespace {

constexpr double profile_seconds = 1;  // enough for some hundred calls of a network of a few milliseconds

// Of two sets of schedules for one network, the one that is faster when both are timed interleaved.
Schedules faster_of(const Run& run, const Entrant& network, const Schedules& other, KernelCache& kernels) {
    if (other == network.schedules) return other;
    std::vector<Entrant> both{{network.graph, network.weights, network.schedules, {}}, {network.graph, network.weights, other, {}}};
    const std::vector<Measured> times = measure_in_scratch(run, both, kernels, nullptr);
    return times[1].latency && times[0].latency && times[1].latency->median_ms < times[0].latency->median_ms ? other : network.schedules;
}

// The best schedules in float32 that tuning found.
Schedules wide_schedules(const TunedNetwork& tuned) {
    Schedules wide;
    for (const Site& site : tuned.network.sites.all)
        if (const auto& found = tuned.tuning.best[site.kind].wide) wide[site.name] = *found;
    return wide;
}

class Confirmation {
public:
    Confirmation(const Run& run, const Effort& layouts) : run_(run), layouts_(layouts), kernels_{run.pool} {}

    Entrant enter(const TunedNetwork& tuned, const char* folder) {
        const Graph& graph = tuned.network.graph;
        run_.progress.advance(0, fmt::format("trying schedules inside the {} network", folder));
        Entrant e{graph, tuned.network.weights, fastest_in_network(run_, tuned.network, tuned.tuning, trying_folder(run_), kernels_), {}};
        const Precision precision = choose_precision(run_, {graph, e.weights, e.schedules}, tuned.lost, kernels_);
        const Schedules wide = wide_schedules(tuned);
        e.schedules = with_precision(precision, graph, e.schedules, wide);
        if (!run_.timing.network) {
            const Layouts layouts = with_layouts(run_, graph, e.schedules, layouts_);
            if (!layouts.note.empty()) run_.progress.note(layouts.note);
            e.schedules = faster_of(run_, e, with_precision(precision, graph, layouts.schedules, wide), kernels_);
            e.schedules = faster_of(run_, e, with_precision(precision, graph, with_blocks(run_, graph, e.schedules), wide), kernels_);
        }
        e.record.rounding = rounding_evidence(run_, {graph, e.weights, e.schedules}, precision, kernels_);
        if (!e.record.rounding.is_null()) run_.progress.note(fmt::format("the {} network: {}", folder, e.record.rounding["why"].get<std::string>()));
        e.record.files = compile_network({graph, e.weights, e.schedules}, run_.target, run_.request.out / folder, &run_.progress, &kernels_);
        e.record.nests = fused_nests(graph, e.schedules, run_.target);
        seal_folder(e.record.files.folder);  // people run this folder by itself, too
        return e;
    }

    void measure(std::span<Entrant> entrants) const {
        if (run_.timing.network) {
            for (Entrant& e : entrants) e.record.time = run_.timing.network(e.graph, e.weights, e.schedules, true);
            return;
        }
        const std::vector<Measured> times = measure_interleaved(entrants, run_.target, Remember::quiet);
        for (std::size_t i = 0; i < entrants.size(); ++i) {
            entrants[i].record.time = times[i];
            std::string why;
            if (times[i].latency) entrants[i].record.profile = profile_network(entrants[i].record.files.folder, profile_seconds, why);
        }
    }

private:
    // The schedules, but in float32 wherever the precision says so.
    Schedules with_precision(const Precision& precision, const Graph& graph, const Schedules& schedules, const Schedules& wide) const {
        if (run_.target.allowed.empty()) return schedules;
        std::set<std::string> sites;
        for (const auto& [site, nest] : fused_nests(graph, schedules, run_.target))
            if (!precision.rounds(site)) sites.insert(site);
        return in_float32(sites, graph, schedules, run_.target, wide);
    }

    const Run& run_;
    Effort layouts_;
    KernelCache kernels_;
};

// Why the original is returned; empty where the chosen network is better.
std::string why_original(const Run& run, const Confirmed& c, bool changed) {
    const Objective objective = objective_for(run.request.objective, run.target);
    const auto before = figure_of(objective, c.original), after = figure_of(objective, c.optimized);
    if (!changed) return "no network of the e-graph is both faster and allowed by the guard: the original is returned";
    if (!after) return "the chosen network could not be measured (" + c.optimized.time.why + "): the original is returned";
    if (before && *after >= *before)
        return fmt::format("the chosen network takes {} and the original {}: the original is returned", figure_words(objective, c.optimized),
                           figure_words(objective, c.original));
    return "";
}

}  // namespace

Confirmed confirm(const Run& run, const TunedNetwork& original, const std::optional<TunedNetwork>& chosen, const Effort& layouts) {
    Confirmation confirmation(run, layouts);
    std::vector<Entrant> entrants{confirmation.enter(original, "original")};
    if (chosen) entrants.push_back(confirmation.enter(*chosen, "optimized"));
    confirmation.measure(entrants);
    Confirmed c;
    if (!entrants.front().record.time.latency)
        throw UserError(Diagnostic{"the original network could not be timed: " + entrants.front().record.time.why,
                                   {},
                                   "what was measured so far is kept; the same command resumes from there"});
    c.original = entrants.front().record, c.optimized = entrants.back().record;
    c.why = why_original(run, c, chosen.has_value());
    c.keep_original = !c.why.empty();
    return c;
}

}  // namespace loopegg
