// Decides which nests are worth tuning, and tunes each nest as it will run in the network, with everything fused into it.
#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include "backends/target/schedule_rules.hpp"
#include "backends/target/target.hpp"
#include "base/error.hpp"
#include "base/places.hpp"
#include "nest/domain/with_domain.hpp"
#include "nest/term/value.hpp"
#include "optimize/algorithms.hpp"
#include "optimize/charged_once.hpp"
#include "optimize/named_sequences.hpp"
#include "optimize/stages.hpp"
#include "optimize/statement_kind.hpp"
#include "optimize/take_turns.hpp"
#include "rewrite/rule_books.hpp"

namespace loopegg {
namespace {

// A kind has up to ten variants on its menu, and up to four variants that leave out what nobody reads. Where many kinds may change, each has fewer, so that
// all kinds can be tuned in the same time. Where one kind alone may change, it has more.
constexpr std::size_t usual_menu = 10;
struct MenuSize {
    std::size_t variants, unread;
};
MenuSize menu_size(std::size_t kinds) {
    constexpr std::size_t nests = 250;
    const std::size_t share = nests / std::max<std::size_t>(1, kinds);
    return {std::clamp<std::size_t>(share, 3, kinds == 1 ? 16 : usual_menu), std::clamp<std::size_t>(share * 2 / 5, 1, 4)};
}
constexpr double share_for_rows = 0.4;       // of the time of a tuning, to find which row of nests is fastest for a kind
constexpr std::size_t most_starts = 64;      // schedules of one nest, by the estimate
constexpr std::size_t most_neighbours = 48;  // of one schedule and round; the model picks the few that are measured

bool transforms_tiles(const Term& nest) { return !statement_of(nest_parts(nest).statement).coefficients.empty(); }

// A variant that leaves out unread outputs is of use only where its reader has a variant that does not read these outputs.
bool of_use(const Input& input, const Discovery& found, const Admission& a) {
    if (!a.verdict.allowed || !a.reader) return a.verdict.allowed;
    return std::any_of(found.admissions.begin(), found.admissions.end(), [&](const Admission& other) {
        return other.site == *a.reader && other.verdict.allowed && !other.reader && leaves_unread(input.sites, found, a, other.variant);
    });
}

// One variant of a kind, as a candidate for tuning.
struct OnOffer {
    std::size_t variant;
    int halvings;  // of the work (take_turns.hpp)
    double cost;   // of capacity, the mean over the sites that admit it
    std::size_t sites;
    std::string how;  // the variant's name and its restriction_kind
};

// The menu has, for every halving of the work, the variant that costs least capacity, then the next variant for each, and so on. Within a halving the ways to
// restrict a site take turns, because a family should be a mixture (mixture.hpp). A short menu has one variant of each way instead, with about a quarter of
// the work left: to take equally much from all sites costs less than to take everything from a few. The menu of the only kind that may change has all ways,
// too.
std::vector<std::size_t> menu(std::vector<OnOffer> candidates, std::size_t most) {
    const auto nearness = [](const OnOffer& o) { return std::pair(std::abs(o.halvings - 2), -o.halvings); };
    std::stable_sort(candidates.begin(), candidates.end(), [&](const OnOffer& a, const OnOffer& b) {
        const auto key = [&](const OnOffer& o) { return std::tuple(nearness(o), o.cost, -static_cast<double>(o.sites)); };
        return key(a) < key(b);
    });
    if (most < 6 || most > usual_menu) {
        take_turns(candidates, [](const OnOffer& c) { return c.how; });
    } else {
        take_turns(candidates, [](const OnOffer& c) { return std::pair(c.halvings, c.how); });
        std::stable_sort(candidates.begin(), candidates.end(), [&](const OnOffer& a, const OnOffer& b) { return nearness(a) < nearness(b); });
        take_turns(candidates, [](const OnOffer& c) { return c.halvings; });
    }
    candidates.resize(std::min(candidates.size(), most));
    std::vector<std::size_t> out;
    for (const OnOffer& c : candidates) out.push_back(c.variant);
    return out;
}

// For each kind: the original, a menu of the variants that its sites admit, and a menu of the variants that leave out unread outputs. Kinds with most work
// come first. So, when time runs out, only small kinds (originals and variants alike) had fewer trials.
std::vector<std::size_t> worth_tuning(const Input& input, const Discovery& found) {
    struct Use {
        double cost = 0;
        std::size_t sites = 0;
    };
    std::vector<Use> admitted(found.variants.size()), unread(found.variants.size());  // by variant
    for (const Admission& a : found.admissions) {
        if (!of_use(input, found, a)) continue;
        Use& use = (a.reader ? unread : admitted)[a.variant];
        use.cost += capacity_cost(a.verdict), ++use.sites;
    }
    std::vector<std::size_t> kinds(input.sites.kinds.size()), picked;
    std::iota(kinds.begin(), kinds.end(), 0);
    const auto work = [&](std::size_t k) { return found.variants[k].macs * static_cast<std::int64_t>(input.sites.kinds[k].sites.size()); };
    std::stable_sort(kinds.begin(), kinds.end(), [&](std::size_t a, std::size_t b) { return work(a) > work(b); });
    const auto may_change = [&](const SiteKind& k) { return !input.sites.all_kept(k); };
    const MenuSize size = menu_size(static_cast<std::size_t>(std::count_if(input.sites.kinds.begin(), input.sites.kinds.end(), may_change)));
    for (std::size_t k : kinds) {
        picked.push_back(k);
        for (const auto& [uses, most] : {std::pair(&admitted, size.variants), std::pair(&unread, size.unread)}) {
            std::vector<OnOffer> candidates;
            for (std::size_t v = input.sites.kinds.size(); v < found.variants.size(); ++v) {
                const Use& use = (*uses)[v];
                if (found.variants[v].kind != k || found.variants[v].unpaid || use.sites == 0 || std::find(picked.begin(), picked.end(), v) != picked.end())
                    continue;
                candidates.push_back({v, halvings(found.variants[k].macs, found.variants[v].macs), use.cost / static_cast<double>(use.sites), use.sites,
                                      found.variants[v].effect + " " + restriction_kind(found.variants[v].domain)});
            }
            for (std::size_t v : menu(std::move(candidates), most)) picked.push_back(v);
        }
    }
    return picked;
}

// A variant as it is compiled.
struct Running {
    std::size_t variant;
    Term nest;
    Term restoring{};  // the second nest, of a variant with two nests
};

// The nests of each variant, with what follows its site fused in. Planning a network is costly, so one network holds a variant of every kind at once.
std::vector<Running> as_they_run(const Input& input, const Discovery& found, const std::vector<std::size_t>& picked, const Target& target) {
    std::vector<std::vector<std::size_t>> of_kind(input.sites.kinds.size());  // places in `picked`
    for (std::size_t i = 0; i < picked.size(); ++i) of_kind[found.variants[picked[i]].kind].push_back(i);
    std::vector<Running> nests;
    for (std::size_t v : picked) nests.push_back({v, {}});
    for (std::size_t row = 0, shown = 0; shown < picked.size(); ++row) {
        std::vector<std::pair<std::size_t, std::string>> places;
        std::vector<std::pair<std::string, Domain>> domains;
        for (std::size_t k = 0; k < of_kind.size(); ++k) {
            if (row >= of_kind[k].size()) continue;
            places.emplace_back(of_kind[k][row], input.sites.all[input.sites.kinds[k].sites.front()].name);
            domains.emplace_back(places.back().second, found.variants[picked[of_kind[k][row]]].domain);
        }
        const Graph graph = with_domains(input.graph, domains);
        const std::map<std::string, Term> fused = fused_nests(graph, {}, target);
        for (const auto& [i, site] : places) {
            nests[i].nest = fused.at(site);
            if (found.variants[picked[i]].two_nests()) nests[i].restoring = fused.at(restoring_node(graph, site).name);
        }
        shown += places.size();
    }
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

// A row of nests that computes a variant, and the places of these nests in the list of nests to tune.
struct Row {
    std::size_t variant;
    Term value;
    std::vector<std::size_t> at;  // places among the nests
};

Measured time_of(const Row& row, const std::vector<TunedNest>& tuned) {
    Measured sum = tuned[row.at[0]].best;
    for (std::size_t i = 1; i < row.at.size(); ++i) sum = together(sum, tuned[row.at[i]].best);
    return sum;
}

// The rows that may compute a nest, and what earlier tunings chose among such rows.
struct RowMenu {
    std::function<std::vector<Term>(const Term& nest)> of;
    RowChoices& known;
};

// For each kind, the row that is fastest for the original after a few trials. The variants of the kind are tuned as this row, too. `menu.known` gets what
// this tuning chooses.
std::map<std::size_t, Term> row_of_kind(const Input& input, const std::vector<Running>& running, const RowMenu& menu, Measurer& measurer, TuneOptions options,
                                        Progress& progress) {
    std::vector<Row> rows;
    std::vector<Term> nests;
    std::map<std::size_t, Term> how;
    std::map<std::size_t, std::string> kind;  // by variant that is measured
    for (const Running& r : running) {
        if (r.variant >= input.sites.kinds.size() || r.restoring) continue;
        const std::string its = statement_kind(nest_parts(r.nest).statement);
        if (const auto at = menu.known.find(its); at != menu.known.end()) {
            how[r.variant] = at->second;
            continue;
        }
        kind[r.variant] = its;
        for (const Term& value : menu.of(r.nest)) {
            rows.push_back({r.variant, value, {}});
            for (const Term& nest : nests_of(value[1])) rows.back().at.push_back(nests.size()), nests.push_back(nest);
        }
    }
    if (nests.empty()) return how;
    options.trials = options.per_round = 2;  // the first schedules of each nest are good ones
    options.role = {};
    const std::vector<TunedNest> tuned = tune(nests, measurer, options, progress);
    std::map<std::size_t, double> best;
    for (const Row& row : rows) {
        const Measured time = time_of(row, tuned);
        if (!time.latency) continue;
        const auto [at, fresh] = best.try_emplace(row.variant, time.latency->median_ms);
        if (!fresh && time.latency->median_ms >= at->second) continue;
        at->second = time.latency->median_ms, how[row.variant] = row.value[0];
    }
    for (const auto& [variant, its] : kind)
        if (const auto at = how.find(variant); at != how.end()) menu.known[its] = at->second;
    return how;
}

// Takes the row in place of the one nest where the row is faster, and keeps the slower of the two as the next best, because schedules_in_network.cpp decides
// inside the network.
void offer_row(TunedNest& t, const Row& row, const std::vector<TunedNest>& tuned) {
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
}

}  // namespace

TuneOptions tune_options(const OptimizeRequest& request, const Target& target, int trials) {
    TuneOptions options;
    options.target = request.target, options.trials = trials, options.seconds = request.tune_seconds, options.seed = request.seed;
    options.per_round = std::max(3, (options.trials + 2) / 3);  // a first round in the order of the estimate, then two rounds by the model
    const auto rules = schedule_rules(target);
    // Schedules come cheapest first by the estimate. The first is the default schedule, so nothing slower than the default is chosen. A GPU gets as many
    // schedules as a nest may try when other nests need no trials.
    const std::size_t most = target.gpu() ? 2 * static_cast<std::size_t>(options.trials) : most_starts;
    options.starts = [rules, most](const Term& nest) { return rules->schedules(nest, most); };
    options.prepare = [rules, most](std::span<const Term> nests) { rules->prepare(nests, most); };
    options.wait_for_times = target.gpu() && target.reach == Reach::bundle;
    if (!target.gpu() && rules->varies())
        options.neighbours = [rules](const Term& nest, std::uint64_t seed) {
            // Transforms are fast only when they are written out whole.
            return transforms_tiles(nest) ? std::vector<Term>{} : rules->near(nest, seed, most_neighbours);
        };
    return options;
}

Tuning tune_variants(const OptimizeRequest& request, const Input& input, const Discovery& found, Measurer& measurer, Progress& progress,
                     const TuningShortcuts& shortcuts) {
    const auto& [trials, known, row_choices] = shortcuts;
    const Target target = target_of(request);
    std::vector<std::size_t> picked = worth_tuning(input, found);
    if (known) std::erase_if(picked, [&](std::size_t v) { return input.sites.all_kept(input.sites.kinds[found.variants[v].kind]); });
    std::vector<Term> nests;
    std::map<std::size_t, std::size_t> second;  // by variant: where its second nest is
    const std::vector<Running> running = as_they_run(input, found, picked, target);
    std::vector<std::size_t> kinds;  // of each nest
    std::vector<bool> of_original;   // whether the nest computes an original, by itself or in a row
    const auto add = [&](std::size_t variant, const Term& nest) {
        nests.push_back(nest), kinds.push_back(found.variants[variant].kind), of_original.push_back(variant < input.sites.kinds.size());
    };
    for (std::size_t i = 0; i < picked.size(); ++i) add(picked[i], running[i].nest);
    for (std::size_t i = 0; i < picked.size(); ++i)
        if (running[i].restoring) second[picked[i]] = nests.size(), add(picked[i], running[i].restoring);
    std::vector<Row> rows;
    ChargedOnce charged(measurer);
    TuneOptions options = tune_options(request, target, trials > 0 ? std::min(request.trials, trials) : request.trials);
    options.role = [&](std::size_t i) {  // an original comes before its variants
        const auto first = std::find(kinds.begin(), kinds.end(), kinds[i]);
        return TuneOptions::Role{static_cast<double>(input.sites.kinds[kinds[i]].sites.size()), static_cast<std::size_t>(first - kinds.begin()),
                                 of_original[i]};
    };
    const bool timed = !target.gpu() && (target.reach == Reach::here || target.on_board());
    const auto algorithms = book_with_phase("algorithms", target.rules, shipped("rules/algorithms.rules"));
    if (const Phase* phase = timed && !request.strict_fp ? algorithms->find_phase("algorithms") : nullptr) {
        RowChoices own;
        const RowMenu menu{[&](const Term& nest) { return rows_for(nest, *algorithms, *phase, request.strict_fp); }, row_choices ? *row_choices : own};
        TuneOptions first = options;
        first.seconds *= share_for_rows;
        const std::map<std::size_t, Term> how = row_of_kind(input, running, menu, charged, first, progress);
        for (std::size_t i = 0; i < picked.size(); ++i) {
            const auto wanted = how.find(found.variants[picked[i]].kind);
            if (wanted == how.end() || running[i].restoring) continue;
            for (const Term& value : menu.of(running[i].nest)) {
                if (value[0] != wanted->second) continue;
                rows.push_back({picked[i], value, {}});
                for (const Term& nest : nests_of(value[1])) rows.back().at.push_back(nests.size()), add(picked[i], nest);
            }
        }
    }
    options.seconds = std::max(0.0, options.seconds - charged.charged());
    std::vector<TunedNest> tuned = tune(nests, charged, options, progress);
    Tuning tuning;
    tuning.best.resize(found.variants.size());
    for (const TunedNest& t : tuned) tuning.compiled += t.tried, tuning.failed += t.failed;
    for (std::size_t k = 0; known && k < input.sites.kinds.size(); ++k)
        if (input.sites.all_kept(input.sites.kinds[k])) tuning.best[k] = known->best[k];
    for (std::size_t i = 0; i < picked.size(); ++i) tuning.best[picked[i]] = tuned[i];
    for (const SiteKind& kind : input.sites.kinds)  // without a time of the original there is nothing to compare with
        if (const TunedNest& t = tuning.best[static_cast<std::size_t>(&kind - input.sites.kinds.data())]; !t.best.latency)
            throw UserError(
                Diagnostic{fmt::format("no schedule of '{}' can be timed on {}: {}", input.sites.all[kind.sites.front()].name, request.target, t.best.why),
                           {},
                           "what was measured so far is kept; the same command goes on from there"});
    for (const Row& row : rows) offer_row(tuning.best[row.variant], row, tuned);
    for (const auto& [variant, i] : second) {
        tuning.best[variant].best = together(tuning.best[variant].best, tuned[i].best);
        tuning.restoring[variant] = std::move(tuned[i]);
    }
    return tuning;
}

}  // namespace loopegg
