// Tunes each nest of a network as it will run there, with everything fused into it.
#include <algorithm>

#include <fmt/format.h>

#include "backends/target/target_rules.hpp"
#include "base/error.hpp"
#include "nest/term/rounding.hpp"
#include "nest/term/value.hpp"
#include "optimize/run/times.hpp"
#include "optimize/tune/algorithms.hpp"
#include "optimize/tune/layouts.hpp"
#include "optimize/tune/statement_kind.hpp"
#include "optimize/tune/tuning.hpp"

namespace loopegg {
namespace {

constexpr double share_for_rows = 0.4;      // of the time of a tuning, to find which row of nests is fastest for a kind
constexpr std::size_t max_starts = 64;      // schedules of one nest, by the estimate
constexpr std::size_t max_neighbours = 48;  // of one schedule and round; the model picks the few that are measured

bool transforms_tiles(const Term& nest) { return !statement_of(nest_parts(nest).statement).coefficients.empty(); }

// The nest of each kind of site as it runs, with what follows the site fused in. Kinds that the network computes most come first, so that only small kinds
// had fewer trials when time runs out.
struct Running {
    std::size_t kind;
    Term nest;
};

std::vector<Running> as_they_run(const Network& network, const Target& target) {
    const std::map<std::string, Term> fused = fused_nests(network.graph, {}, target);
    std::vector<Running> nests;
    for (std::size_t k = 0; k < network.sites.kinds.size(); ++k) nests.push_back({k, fused.at(network.sites.all[network.sites.kinds[k].sites.front()].name)});
    const auto work = [&](const Running& r) {
        const SiteKind& kind = network.sites.kinds[r.kind];
        return network.sites.all[kind.sites.front()].macs * static_cast<std::int64_t>(kind.sites.size());
    };
    std::stable_sort(nests.begin(), nests.end(), [&](const Running& a, const Running& b) { return work(a) > work(b); });
    return nests;
}

// The time of two nests that run one after the other.
Measured together(const Measured& a, const Measured& b) {
    if (!a.latency || !b.latency) return a.latency ? b : a;
    Measured sum = a;
    sum.latency->median_ms += b.latency->median_ms, sum.latency->iqr_ms += b.latency->iqr_ms, sum.latency->n = std::min(a.latency->n, b.latency->n);
    sum.latency->measured &= b.latency->measured, sum.latency->disturbed |= b.latency->disturbed;
    sum.seconds += b.seconds;
    return sum;
}

// A row of nests that computes a kind, and the places of these nests in the list of nests to tune.
struct NestRow {
    std::size_t kind;
    Term value;
    std::vector<std::size_t> at;  // places among the nests
};

Measured time_of(const NestRow& row, const std::vector<TunedNest>& tuned) {
    Measured sum = tuned[row.at[0]].best;
    for (std::size_t i = 1; i < row.at.size(); ++i) sum = together(sum, tuned[row.at[i]].best);
    return sum;
}

// The rows that may compute a nest, and what earlier tunings chose among such rows.
struct RowMenu {
    std::function<std::vector<Term>(const Term& nest)> of;
    RowChoices& known;
};

// For each kind, the row that is fastest after a few trials. `menu.known` gets what this tuning chooses.
std::map<std::size_t, Term> row_of_kind(const std::vector<Running>& running, const RowMenu& menu, Measurer& measurer, TuneOptions options, Progress& progress) {
    std::vector<NestRow> rows;
    std::vector<Term> nests;
    std::map<std::size_t, Term> how;
    std::map<std::size_t, std::string> statements;  // by kind that is measured
    for (const Running& r : running) {
        const std::string its = statement_kind(nest_parts(r.nest).statement);
        if (const auto at = menu.known.find(its); at != menu.known.end()) {
            how[r.kind] = at->second;
            continue;
        }
        statements[r.kind] = its;
        for (const Term& value : menu.of(r.nest)) {
            rows.push_back({r.kind, value, {}});
            for (const Term& nest : nests_of(value[1])) rows.back().at.push_back(nests.size()), nests.push_back(nest);
        }
    }
    if (nests.empty()) return how;
    options.trials = options.per_round = 2;  // the first schedules of each nest are good ones
    options.role = {};
    const std::vector<TunedNest> tuned = tune(nests, measurer, options, progress);
    std::map<std::size_t, double> best;
    for (const NestRow& row : rows) {
        const Measured time = time_of(row, tuned);
        if (!time.latency) continue;
        const auto [at, fresh] = best.try_emplace(row.kind, time.latency->median_ms);
        if (!fresh && time.latency->median_ms >= at->second) continue;
        at->second = time.latency->median_ms, how[row.kind] = row.value[0];
    }
    for (const auto& [kind, its] : statements)
        if (const auto at = how.find(kind); at != how.end()) menu.known[its] = at->second;
    return how;
}

// Takes the row in place of the one nest where the row is faster, and keeps the slower of the two as the next best, because schedules_in_network.cpp decides
// inside the network.
void offer_row(TunedNest& t, const NestRow& row, const std::vector<TunedNest>& tuned) {
    constexpr double close = 1.15;
    const Measured time = time_of(row, tuned);
    if (!time.latency || (t.best.latency && time.latency->median_ms > close * t.best.latency->median_ms)) return;
    std::vector<Term> nests;
    for (std::size_t i : row.at) nests.push_back(tuned[i].nest);
    const Term value = with_nests(row.value, nests);
    if (t.best.latency && time.latency->median_ms > t.best.latency->median_ms) {
        t.also = {value};
        return;
    }
    if (t.best.latency) t.also = {t.nest};
    t.nest = value, t.best = time;
    if (!rounds_operands(value)) t.wide = value;
}

// What is tuned together: first the nest of each kind, then the nests of rows.
struct ToTune {
    std::vector<Term> nests;
    std::vector<std::size_t> kinds;  // of each nest
    std::vector<NestRow> rows;
};

ToTune nests_to_tune(const Run& run, const std::vector<Running>& running, const Effort& effort, RowChoices& known, Measurer& measurer) {
    ToTune all;
    const auto add = [&](std::size_t kind, const Term& nest) { all.nests.push_back(nest), all.kinds.push_back(kind); };
    for (const Running& r : running) add(r.kind, r.nest);
    if (run.request.strict_fp) return all;
    const Algorithms algorithms(run.target);
    const RowMenu menu{[&](const Term& nest) { return algorithms.rows(nest); }, known};
    const std::map<std::size_t, Term> how = row_of_kind(running, menu, measurer, tune_options(run, effort.share(share_for_rows)), run.progress);
    for (const Running& r : running) {
        const auto wanted = how.find(r.kind);
        if (wanted == how.end()) continue;
        for (const Term& value : menu.of(r.nest)) {
            if (value[0] != wanted->second) continue;
            all.rows.push_back({r.kind, value, {}});
            for (const Term& nest : nests_of(value[1])) all.rows.back().at.push_back(all.nests.size()), add(r.kind, nest);
        }
    }
    return all;
}

// The schedules, with one in float32 in every third place at least, because a site that rounding moves too far keeps float32.
std::vector<Term> with_float32_among(const std::vector<Term>& schedules, const std::vector<Term>& wide) {
    constexpr std::size_t share = 3;
    std::vector<Term> all;
    std::size_t next = 0, wides = 0;
    const auto add = [&](const Term& t) { all.push_back(t), wides += !rounds_operands(t); };
    for (const Term& t : schedules) {
        while (next < wide.size() && std::find(all.begin(), all.end(), wide[next]) != all.end()) ++next;
        if (next < wide.size() && wides < (all.size() + 1) / share) add(wide[next++]);
        if (std::find(all.begin(), all.end(), t) == all.end()) add(t);
    }
    return all;
}

}  // namespace

TuneOptions tune_options(const Run& run, const Effort& effort) {
    const Target& target = run.target;
    TuneOptions options;
    options.target = run.request.target, options.trials = effort.trials, options.seconds = effort.seconds, options.seed = run.request.seed;
    options.per_round = std::max(3, (options.trials + 2) / 3);  // a first round in the order of the estimate, then two rounds by the model
    const auto rules = schedule_rules(target);
    // Schedules come cheapest first by the estimate. The first is the default schedule, so nothing slower than the default is chosen. A GPU gets as many
    // schedules as a nest may try when other nests need no trials.
    const std::size_t most = target.gpu() ? 2 * static_cast<std::size_t>(options.trials) : max_starts;
    options.starts = [rules, most](const Term& nest) { return rules->schedules(nest, most); };
    options.prepare = [rules, most](std::span<const Term> nests) { rules->prepare(nests, most); };
    if (!target.gpu() && !target.allowed.empty()) {
        Target in_float32 = target;
        in_float32.allowed.clear();
        options.starts = [rules, plain = schedule_rules(in_float32), most](const Term& nest) {
            return with_float32_among(rules->schedules(nest, most), plain->schedules(nest, most));
        };
    }
    options.wait_for_times = target.gpu() && target.reach == Reach::bundle;
    if (!target.gpu() && rules->varies())
        options.neighbours = [rules](const Term& nest, std::uint64_t seed) {
            // Transforms are fast only when they are written out whole.
            return transforms_tiles(nest) ? std::vector<Term>{} : rules->near(nest, seed, max_neighbours);
        };
    return options;
}

Tuning tune_network(const Run& run, const Network& network, const Effort& effort, RowChoices& known) {
    ChargedOnce charged(run.timing.nests);
    const std::vector<Running> running = as_they_run(network, run.target);
    const ToTune all = nests_to_tune(run, running, effort, known, charged);
    TuneOptions options = tune_options(run, effort);
    options.role = [&](std::size_t i) {  // a row comes after the nest that it would replace
        const auto first = std::find(all.kinds.begin(), all.kinds.end(), all.kinds[i]);
        return TuneOptions::Role{static_cast<double>(network.sites.kinds[all.kinds[i]].sites.size()), static_cast<std::size_t>(first - all.kinds.begin()),
                                 true};
    };
    options.seconds = std::max(0.0, options.seconds - charged.charged());
    const std::vector<TunedNest> tuned = tune(all.nests, charged, options, run.progress);
    Tuning tuning;
    tuning.best.resize(network.sites.kinds.size());
    for (const TunedNest& t : tuned) tuning.compiled += t.tried, tuning.failed += t.failed;
    for (std::size_t i = 0; i < running.size(); ++i) tuning.best[running[i].kind] = tuned[i];
    for (std::size_t k = 0; k < tuning.best.size(); ++k)
        if (const TunedNest& t = tuning.best[k]; !t.best.latency)
            throw UserError(Diagnostic{fmt::format("no schedule of '{}' can be timed on {}: {}", network.sites.all[network.sites.kinds[k].sites.front()].name,
                                                   run.request.target, t.best.why),
                                       {},
                                       "what was measured so far is kept; the same command resumes from there"});
    for (const NestRow& row : all.rows) offer_row(tuning.best[row.kind], row, tuned);
    return tuning;
}

std::map<std::string, double> site_times(const Sites& sites, const Tuning& tuning) {
    std::map<std::string, double> ms;
    for (const Site& s : sites.all)
        if (const auto& latency = tuning.best[s.kind].best.latency) ms[s.name] = latency->median_ms;
    return ms;
}

Schedules best_schedules(const Run& run, const Network& network, const Tuning& tuning, const Effort& effort) {
    Schedules schedules;
    for (const Site& site : network.sites.all)
        if (const TunedNest& t = tuning.best[site.kind]; t.best.latency) schedules[site.name] = t.nest;
    return run.timing.network ? schedules : with_layouts(run, network.graph, schedules, effort).schedules;
}

}  // namespace loopegg
