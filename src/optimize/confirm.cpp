// Compiles the chosen network and the original with the same effort and measures both end to end, side by side.
#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "backends/kernel/kernel_cache.hpp"
#include "backends/measure/latency_store.hpp"
#include "backends/measure/network_measure.hpp"
#include "backends/target/target.hpp"
#include "base/error.hpp"
#include "base/scratch.hpp"
#include "base/whole_folder.hpp"
#include "nest/term/rounding.hpp"
#include "optimize/layouts.hpp"
#include "optimize/rounding_guard.hpp"
#include "optimize/stages.hpp"

namespace loopegg {
namespace {

constexpr double profile_seconds = 1;  // enough for some hundred calls of a network of a few milliseconds

// A network on its way to being measured.
struct Entrant {
    const Graph& graph;
    const Weights& weights;
    Schedules schedules;
    NetworkRecord record;
};

// Which times are stored. A figure that people are told comes from a quiet machine. A time that only guides the search is stored even if the machine
// was busy. Then the next run takes the same way, and needs no time that the store does not have.
enum class Remember { quiet, all };

// Measures networks side by side. The key of a stored time names the network and the networks that were timed beside it. `make` compiles the networks where
// some time is not known.
std::vector<Measured> measure_beside(std::span<Entrant> entrants, const Target& target, Remember which, const std::function<void(Entrant&)>& make = {}) {
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
        keys.push_back(latency_key(target, Term("beside", std::move(order))));
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

// The times of networks that only lead the search. They are compiled into a folder that goes.
std::vector<Measured> measure_in_scratch(std::span<Entrant> entrants, const Target& target, const std::filesystem::path& scratch, KernelCache& kernels,
                                         Progress* progress) {
    const ScratchFolder trying(scratch);
    return measure_beside(entrants, target, Remember::all, [&](Entrant& e) {
        e.record.files = compile_network({e.graph, e.weights, e.schedules}, target, trying.path() / std::to_string(&e - entrants.data()), progress, &kernels);
    });
}

// Of two sets of schedules for one network, the one that is faster in turns.
Schedules faster_of(const Entrant& network, const Schedules& other, const Target& target, const std::filesystem::path& scratch, KernelCache& kernels) {
    if (other == network.schedules) return other;
    std::vector<Entrant> both{{network.graph, network.weights, network.schedules, {}}, {network.graph, network.weights, other, {}}};
    const std::vector<Measured> times = measure_in_scratch(both, target, scratch, kernels, nullptr);
    return times[1].latency && times[0].latency && times[1].latency->median_ms < times[0].latency->median_ms ? other : network.schedules;
}

bool refused(const nlohmann::json& rounding) { return !rounding.is_null() && !rounding["allowed"].get<bool>(); }

// The same schedules, but the sites whose schedules round operands get default schedules in float32.
Schedules unrounded(const Graph& graph, Schedules schedules, Target target) {
    const std::map<std::string, Term> given = fused_nests(graph, schedules, target);
    target.allowed.clear();
    std::erase_if(schedules, [](const auto& s) { return rounds_operands(s.second); });
    const std::map<std::string, Term> plain = fused_nests(graph, schedules, target);
    for (const auto& [site, nest] : given)
        if (rounds_operands(nest)) schedules[site] = plain.at(site);
    return schedules;
}

void measure(std::span<Entrant> entrants, const Target& target, const Timing& timing) {
    if (timing.network) {
        for (Entrant& e : entrants) e.record.time = timing.network(e.graph, e.weights, e.schedules, true);
        return;
    }
    const std::vector<Measured> times = measure_beside(entrants, target, Remember::quiet);
    for (std::size_t i = 0; i < entrants.size(); ++i) {
        entrants[i].record.time = times[i];
        std::string why;
        if (times[i].latency) entrants[i].record.profile = profile_network(entrants[i].record.files.folder, profile_seconds, why);
    }
}

}  // namespace

Confirmed confirm(const OptimizeRequest& request, const Contest& contest, const Timing& timing, const KernelShelf& shelf, Progress& progress) {
    const auto& [input, original_tuning, tuning, selection] = contest;
    const Target target = target_of(request);
    const Objective objective = objective_for(request.objective, target);
    const Input& read = input.as_read();
    const bool changed = input.read || selection.chosen.variant != original_variants(input.sites);
    const Weights weights = changed ? read.carried_to(selection.chosen.graph, request.seed) : Weights{};
    std::vector<Entrant> entrants;
    KernelCache kernels{shelf};
    auto enter = [&](const TunedNetwork& network, const char* folder) {
        const Graph& graph = network.graph;
        const Weights& w = network.weights;
        progress.advance(0, fmt::format("trying schedules inside the {} network", folder));
        Entrant e{graph, w, fastest_in_network(network, target, request.out / ".loopegg-trying", kernels), {}};
        if (!timing.network) {
            const Layouts layouts = with_layouts(request, graph, e.schedules, target, timing.nests, progress);
            if (!layouts.note.empty()) progress.note(layouts.note);
            e.schedules = faster_of(e, layouts.schedules, target, request.out / ".loopegg-trying", kernels);
        }
        e.record.rounding = rounding_evidence(request, graph, w, e.schedules);
        if (refused(e.record.rounding)) {
            progress.note(fmt::format("the {} network keeps float32: {}", folder, e.record.rounding["why"].get<std::string>()));
            e.schedules = unrounded(graph, e.schedules, target);
        }
        e.record.files = compile_network({graph, w, e.schedules}, target, request.out / folder, &progress, &kernels);
        e.record.nests = fused_nests(graph, e.schedules, target);
        seal_folder(e.record.files.folder);  // people run this folder by itself, too
        entrants.push_back(std::move(e));
    };
    enter({read.graph, read.weights, read.sites, input.read ? original_tuning : tuning, original_variants(read.sites)}, "original");
    if (changed) enter({selection.chosen.graph, weights, input.sites, tuning, selection.chosen.variant}, "optimized");
    measure(entrants, target, timing);

    Confirmed c;
    if (!entrants.front().record.time.latency)
        throw UserError(Diagnostic{"the original network could not be timed: " + entrants.front().record.time.why,
                                   {},
                                   "what was measured so far is kept; the same command goes on from there"});
    c.original = entrants.front().record, c.optimized = entrants.back().record;
    const auto before = figure_of(objective, c.original), after = figure_of(objective, c.optimized);
    if (!changed)
        c.keep_original = true, c.why = "no site has a variant that is both faster and admitted by the guard: the original is returned";
    else if (!after)
        c.keep_original = true, c.why = "the chosen network could not be measured (" + c.optimized.time.why + "): the original is returned";
    else if (before && *after >= *before)
        c.keep_original = true, c.why = fmt::format("the chosen network takes {} and the original {}: the original is returned",
                                                    figure_words(objective, c.optimized), figure_words(objective, c.original));
    return c;
}

Schedules best_schedules(const OptimizeRequest& request, const Input& input, const Tuning& tuning, const Timing& timing, Progress& progress) {
    Schedules schedules;
    for (const Site& site : input.sites.all)
        if (const TunedNest& t = tuning.best[site.kind]; t.best.latency) schedules[site.name] = t.nest;
    return timing.network ? schedules : with_layouts(request, input.graph, schedules, target_of(request), timing.nests, progress).schedules;
}

std::vector<Measured> time_in_turns(const OptimizeRequest& request, std::span<const std::pair<const Input*, const Schedules*>> networks, const Timing& timing,
                                    const KernelShelf& shelf, Progress& progress) {
    const Target target = target_of(request);
    KernelCache kernels{shelf};
    std::vector<Entrant> entrants;
    for (const auto& [input, schedules] : networks) entrants.push_back({input->graph, input->weights, *schedules, {}});
    std::vector<Measured> times;
    if (timing.network)
        for (const Entrant& e : entrants) times.push_back(timing.network(e.graph, e.weights, e.schedules, false));
    else
        times = measure_in_scratch(entrants, target, request.out / ".loopegg-trying", kernels, &progress);
    return times;
}

}  // namespace loopegg
