#include "optimize/site_trial.hpp"

#include <algorithm>

#include "optimize/families.hpp"
#include "optimize/finalists.hpp"

namespace loopegg {
namespace {

// The trial is worth little of the run's time, because variants of single sites seldom beat whole networks (experiments/rivals). So it looks at one family of
// sites, and asks as many questions as reach the paper's sequences on it (tests/unit/optimize/test_discover.cpp).
constexpr std::int64_t questions = 120;
constexpr double tuning_share = 0.1;  // of the seconds for tuning
constexpr int trials = 6;             // schedules of a nest
constexpr double room = -0.1;         // of the excess: about 0.14 points

double ms_of(const Tuning& tuning, std::size_t variant) {
    const auto& latency = tuning.best[variant].best.latency;
    return latency ? latency->median_ms : 0;
}

// Keeps all sites but those of one kind and one family: the kind that takes most of the time, and its largest family.
void keep_all_but_slowest(const Graph& graph, Sites& sites, const Tuning& tuning) {
    const auto ms = [&](const SiteKind& k) { return ms_of(tuning, static_cast<std::size_t>(&k - sites.kinds.data())) * static_cast<double>(k.sites.size()); };
    const auto slowest = std::max_element(sites.kinds.begin(), sites.kinds.end(), [&](const SiteKind& a, const SiteKind& b) { return ms(a) < ms(b); });
    const std::size_t kind = static_cast<std::size_t>(slowest - sites.kinds.begin());
    for (Site& s : sites.all) s.kept |= s.kind != kind;
    const std::vector<std::vector<std::size_t>> families = families_of(graph, sites);
    const auto largest = std::max_element(families.begin(), families.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
    if (largest == families.end()) return;  // the user keeps all of them
    for (std::size_t s = 0; s < sites.all.size(); ++s) sites.all[s].kept |= std::find(largest->begin(), largest->end(), s) == largest->end();
}

// What the network takes with the chosen variants: its time in turns, by the share of its sites' times that is left.
double with_variants(double whole_ms, const Sites& sites, const Tuning& tuning, const std::vector<std::size_t>& variant) {
    double before = 0, after = 0;
    for (std::size_t s = 0; s < sites.all.size(); ++s) before += ms_of(tuning, sites.all[s].kind), after += ms_of(tuning, variant[s]);
    return before > 0 ? whole_ms * after / before : whole_ms;
}

// The fastest of the timed networks that have room; none: the original.
std::optional<std::size_t> fastest_with_room(const WholeNetworks& networks) {
    std::optional<std::size_t> fastest;
    for (std::size_t i = 0; i < networks.timed.size(); ++i) {
        const TimedNetwork& t = networks.timed[i];
        if (!t.time.latency || !has_room(networks.judged[t.candidate].judged)) continue;
        if (!fastest || t.time.latency->median_ms < networks.timed[*fastest].time.latency->median_ms) fastest = i;
    }
    return fastest;
}

}  // namespace

bool has_room(const NetworkVerdict& verdict) { return verdict.allowed && verdict.excess <= room; }

SiteTrial try_sites(const OptimizeRequest& request, const Input& read, const WholeNetworks& networks, CapacityOracle& oracle, const Timing& timing,
                    Progress& progress) {
    const std::optional<std::size_t> start = fastest_with_room(networks);
    const Measured& whole = start ? networks.timed[*start].time : networks.original;
    SiteTrial trial;
    trial.network = start ? networks.timed[*start].input : read;
    trial.from = start ? finalist_names(networks)[*start] : "original";
    const Tuning& known = start ? networks.timed[*start].tuning : networks.original_tuning;
    keep_all_but_slowest(trial.network.graph, trial.network.sites, known);
    OptimizeRequest less = request;
    less.budget = std::min(less.budget, questions), less.tune_seconds *= tuning_share;
    less.max_latency_ms = std::numeric_limits<double>::infinity();
    less.architecture = "all";  // what pays in a class saves time over all sites: here there are few
    BesideOriginal beside(oracle, read.graph, std::max(1e-6, kept_share(trial.network.verdict)));
    trial.found = discover_variants(less, trial.network, beside, progress, trial.rules, "trial");
    trial.tuning = tune_variants(less, trial.network, trial.found, timing.nests, progress, {trials, &known});
    const Selection selection = select(less, trial.network, trial.found, trial.tuning, beside, progress);
    const Measured& best = networks.timed[*networks.best].time;
    trial.beside_ms = best.latency ? best.latency->median_ms : 0;
    trial.ms = whole.latency ? with_variants(whole.latency->median_ms, trial.network.sites, trial.tuning, selection.chosen.variant)
                             : std::numeric_limits<double>::infinity();
    if (trial.pays() && start) trial.network.proof = proof_of(request, read, networks, *start);
    return trial;
}

nlohmann::json site_trial_json(const SiteTrial& trial) {
    nlohmann::json sites = nlohmann::json::array();
    for (const Site& s : trial.network.sites.all)
        if (!s.kept) sites.push_back(s.name);
    return {{"from", trial.from},
            {"sites", sites},
            {"latency_ms", trial.ms},
            {"beside_ms", trial.beside_ms},
            {"paid", trial.pays()},
            {"configurations", trial.found.configurations},
            {"rejected", trial.found.rejected},
            {"effects", effects_json(trial.found, trial.tuning)}};
}

}  // namespace loopegg
