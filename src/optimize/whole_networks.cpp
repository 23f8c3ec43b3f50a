#include "optimize/whole_networks.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "backends/target/schedule_rules.hpp"
#include "base/error.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"
#include "fisher/evidence.hpp"
#include "graph/flops.hpp"
#include "optimize/finalists.hpp"
#include "optimize/network_proof.hpp"
#include "optimize/rivals.hpp"
#include "rules/load.hpp"

namespace loopegg {
namespace {

using nlohmann::json;

constexpr std::size_t own_finalists = 4;  // unless the user asks for more; tuned one after another, because the clock learns from each
// How much worse a network ranks beside an equal one where the user trains finalists: about the guard's mean error on a base network that it has not seen,
// 0.25 points (experiments/accuracy), as a share of the points that networks lose which are worth training.
constexpr double finalists_spread = 0.25;
constexpr std::int64_t asks_between = 12;  // questions to the guard before the next network is tuned
// Of the time for tuning. The original and every network beside it are tuned with equal effort: a speed-up over an original that was tuned better would be too
// small, and the search would then return a network that is smaller than it had to be. A trial of the original takes about twice as long as one of a network
// that is worth timing, so the original gets two parts of this share and each other network one. Layouts take a share of each part beside it
// (layout_times.cpp), and rules on single sites take the rest.
constexpr double networks_share = 0.5, original_parts = 2;
// What the trials of a nest are divided by. Every nest of every network should have its first trials before the time of the network is up: a network of which
// some nests have none takes longer than it has to.
constexpr int fewer_trials = 3;
constexpr std::size_t naive_kinds = 3;  // the best scaling of width, of depth and of both are tuned and timed

// A request with a share of the time. Fewer schedules are tried, but the same ones come first.
OptimizeRequest with_less_time(OptimizeRequest request, double share) {
    request.tune_seconds *= share, request.trials = std::max(1, request.trials / fewer_trials);
    return request;
}

Input input_of(const Input& read, const ShapeSpace& space, const NetworkCandidate& c, const OptimizeRequest& request) {
    Input input;
    input.graph = c.graph, input.trained = read.trained, input.read = &read;
    input.weights = read.carried_to(c.graph, request.seed);
    std::vector<std::string> keep;
    for (const Site& s : read.sites.all)
        if (s.kept) keep.push_back(s.name);
    input.sites = sites_of(input.graph);
    for (Site& s : input.sites.all) s.kept = std::find(keep.begin(), keep.end(), s.name) != keep.end();
    input.plan = space.plan(c.shape), input.verdict = c.judged.verdict;
    return input;
}

// The guard of the paper, on the same data and seeds.
std::unique_ptr<Oracle> paper_oracle(const OptimizeRequest& request, const Input& input) {
    OracleOptions options;
    options.guard = "fisher-paper", options.data = request.data, options.seed = request.seed;
    options.trained = input.trained ? &input.weights : nullptr;
    options.store = default_evidence();
    return make_oracle(std::move(options));
}

// The network that a rival picks, with the verdict of this run's guard.
std::vector<NetworkCandidate> rival_candidates(const OptimizeRequest& request, const Input& input, const JudgedSpace& judged, ShapeSearchOptions options,
                                               Progress& progress) {
    constexpr std::int64_t papers_budget = 1000;
    if (request.budget == OptimizeRequest{}.budget)
        options.budget = papers_budget;
    else
        options.budget = request.budget;
    const std::unique_ptr<Oracle> oracle = paper_oracle(request, input);
    NetworkJudge paper(*oracle, input.graph);
    const JudgedSpace by_paper{judged.space, paper, judged.clock};
    std::vector<NetworkCandidate> all;
    if (request.search == "random") {
        all = random_configurations(by_paper, options, progress);
        std::erase_if(all, [](const NetworkCandidate& c) { return !c.judged.allowed; });
        std::stable_sort(all.begin(), all.end(), [](const NetworkCandidate& a, const NetworkCandidate& b) { return a.ms < b.ms; });
    } else {
        if (!std::isfinite(options.max_ms)) options.max_ms = judged.clock.ms(input.graph) / 2;
        all = block_swaps(by_paper, options, progress);
    }
    all.resize(std::min<std::size_t>(all.size(), 1));
    if (all.empty()) throw UserError("--search " + request.search + ": no configuration is legal within the limits");
    // This is the rival's pick. The verdict of this run's guard is reported, but it does not decide.
    const NetworkVerdict ours = judged.judge.judge({&all[0].graph, 1}).front();
    all[0].judged = ours, all[0].judged.allowed = all[0].judged.verdict.allowed = true, all[0].judged.excess = std::min(0.0, ours.excess);
    return all;
}

}  // namespace

std::map<std::string, double> site_times(const Sites& sites, const Tuning& tuning) {
    std::map<std::string, double> ms;
    for (const Site& s : sites.all)
        if (const auto& latency = tuning.best[s.kind].best.latency) ms[s.name] = latency->median_ms;
    return ms;
}

const std::vector<std::string>& search_names() {
    static const std::vector<std::string> names{"rules", "sites", "scale", "random", "blockswap"};
    return names;
}

WholeNetworks find_networks(const OptimizeRequest& request, const Input& input, CapacityOracle& oracle, const Timing& timing, const KernelShelf& shelf,
                            Progress& progress) {
    if (std::find(search_names().begin(), search_names().end(), request.search) == search_names().end())
        throw UsageError(Diagnostic{
            fmt::format("'{}' is no search: expected {}", request.search, join(search_names(), ", ")), {}, did_you_mean(request.search, search_names())});
    if (request.finalists && request.search != "rules")
        throw UsageError(Diagnostic{fmt::format("--finalists: the search '{}' has no networks of its own to write", request.search), {}, "leave --search out"});
    WholeNetworks out;
    const ShapeSpace space(input.graph, input.sites, request.channels_multiple);
    if (request.search == "sites" || (space.branches().empty() && space.widths().empty())) return out;

    const bool own = request.search == "rules";
    const std::size_t wanted = static_cast<std::size_t>(request.finalists.value_or(own_finalists));
    const double part = networks_share / (original_parts + static_cast<double>(naive_kinds + (own ? wanted : 1)));
    const OptimizeRequest less = with_less_time(request, part), for_original = with_less_time(request, original_parts * part);
    RowChoices rows;  // the networks are alike but for their channels, so they share what their sites are computed by
    progress.advance(0, "tuning the original");
    out.original_tuning = tune_variants(for_original, input, originals_only(input.sites), timing.nests, progress, {.rows = &rows});
    const Schedules original_schedules = best_schedules(for_original, input, out.original_tuning, timing, progress);
    const Target target = target_of(request);
    SiteClock clock(target.gpu() ? 1 : vector_machine(target).lanes);
    clock.learn(input.graph, site_times(input.sites, out.original_tuning));
    NetworkJudge judge(oracle, input.graph);
    ShapeSearchOptions options;
    options.seed = request.seed, options.budget = std::max<std::int64_t>(1, request.budget * 2 / 5);
    options.max_ms = request.allowed_ms(clock.ms(input.graph));
    const std::int64_t scalings = static_cast<std::int64_t>(naive_scalings(space).size());
    if (request.finalists)
        options.spread = finalists_spread, options.budget = std::max(options.budget, scalings + asks_between * static_cast<std::int64_t>(wanted));
    ShapeSearch search(space, judge, clock, options, progress);
    // Times the original and the networks from `first` on, in turns.
    const auto time_from = [&](std::size_t first) {
        std::vector<std::pair<const Input*, const Schedules*>> networks{{&input, &original_schedules}};
        for (std::size_t t = first; t < out.timed.size(); ++t) networks.emplace_back(&out.timed[t].input, &out.timed[t].schedules);
        progress.advance(static_cast<std::int64_t>(out.timed.size()), "timing whole networks in turns");
        const std::vector<Measured> times = time_in_turns(request, networks, timing, shelf, progress);
        out.original = times.front();
        for (std::size_t i = 1; i < times.size(); ++i) out.timed[first + i - 1].time = times[i];
        std::vector<std::pair<const Graph*, double>> wholes;
        if (out.original.latency) wholes.emplace_back(&input.graph, out.original.latency->median_ms);
        for (const TimedNetwork& t : out.timed)
            if (t.time.latency) wholes.emplace_back(&t.input.graph, t.time.latency->median_ms);
        clock.learn_whole(wholes);
        if (out.original.latency) options.max_ms = request.allowed_ms(out.original.latency->median_ms);
        search.allow_ms(options.max_ms);
        search.set_the_clock();
    };
    time_from(0);
    search.go_on(scalings);
    std::vector<NetworkCandidate>& judged = search.judged();
    if (!own && request.search != "scale")
        for (NetworkCandidate& c : rival_candidates(request, input, {space, judge, clock}, options, progress)) judged.push_back(std::move(c));

    const auto tune_network = [&](std::size_t i) {
        progress.advance(static_cast<std::int64_t>(out.timed.size()),
                         fmt::format("tuning network {} that is timed ({})", out.timed.size() + 1, judged[i].origin));
        TimedNetwork t{i, input_of(input, space, judged[i], request), {}, {}, {}};
        t.tuning = tune_variants(less, t.input, originals_only(t.input.sites), timing.nests, progress, {.rows = &rows});
        t.schedules = best_schedules(less, t.input, t.tuning, timing, progress);
        judged[i].timed = true, judged[i].foretold_ms = judged[i].ms;
        clock.learn(t.input.graph, site_times(t.input.sites, t.tuning));
        search.set_the_clock();
        out.timed.push_back(std::move(t));
    };
    for (std::size_t i : finalists(judged, own ? 0 : 1, options.max_ms)) tune_network(i);
    if (own) time_from(0);
    for (std::size_t round = 0; own && round < wanted; ++round) {
        search.go_on(asks_between);
        const std::vector<std::size_t> last = finalists(judged, 1, options.max_ms);
        const auto next = std::find_if(last.begin(), last.end(), [&](std::size_t i) { return !judged[i].naive(); });
        if (next == last.end()) break;
        tune_network(*next);
        time_from(out.timed.size() - 1);  // the search follows the clock, so the clock learns its error before the search goes on
    }
    time_from(0);
    out.asked = judge.asked();
    out.judged = std::move(judged);
    const bool limited = std::isfinite(options.max_ms);
    // Where no network is within the limit, the run goes on from the one that exceeds it least: it is tuned further, and compared with the limit at the end.
    const auto better = [&](const NetworkCandidate& a, const NetworkCandidate& b) {
        const auto over = [&](const NetworkCandidate& c) { return std::max(0.0, c.ms - options.max_ms); };
        if (!limited) return a.ms < b.ms;
        return std::pair(over(a), a.judged.loss.points) < std::pair(over(b), b.judged.loss.points);
    };
    for (std::size_t i = 0; i < out.timed.size(); ++i) {
        NetworkCandidate& c = out.judged[out.timed[i].candidate];
        if (!out.timed[i].time.latency) continue;
        c.ms = out.timed[i].time.latency->median_ms;
        const bool rival = request.search == "random" || request.search == "blockswap";
        if (rival && c.naive()) continue;  // naive scalings are timed for comparison; they are not the rival's pick
        if (parameters(c.graph) > request.max_parameters) continue;
        if (!c.judged.allowed || (!limited && out.original.latency && c.ms >= out.original.latency->median_ms)) continue;
        if (!out.best || better(c, out.judged[out.timed[*out.best].candidate])) out.best = i;
    }
    if (out.best) out.timed[*out.best].input.proof = proof_of(request, input, out, *out.best);
    return out;
}

nlohmann::json proof_of(const OptimizeRequest& request, const Input& read, const WholeNetworks& networks, std::size_t timed) {
    const TimedNetwork& network = networks.timed[timed];
    const ShapeSpace space(read.graph, read.sites, request.channels_multiple);
    return prove_shape(read.graph, space, networks.judged[network.candidate].shape, load_rules(rules_file(request.rules)), network.input.verdict);
}

json networks_json(const WholeNetworks& networks) {
    json all = json::array();
    const std::vector<std::string> names = finalist_names(networks);
    for (std::size_t i = 0; i < networks.judged.size(); ++i) {
        const NetworkCandidate& c = networks.judged[i];
        const ExpectedLoss& l = c.judged.loss;
        json j{{"origin", c.origin},
               {"latency_ms", c.ms},
               {"measured", false},
               {"chosen", false},
               {"allowed", c.judged.allowed},
               {"capacity", kept_share(c.judged.verdict)},
               {"loss", {{"points", l.points}, {"low", l.low}, {"high", l.high}}},
               {"macs", macs(c.graph)},
               {"parameters", parameters(c.graph)},
               {"dropped", c.shape.dropped.size()},
               {"narrowed", c.shape.widths.size()},
               {"grouped", c.shape.groups.size()}};
        for (std::size_t t = 0; t < networks.timed.size(); ++t)
            if (networks.timed[t].candidate == i) {
                j["latency"] = latency_json(networks.timed[t].time), j["measured"] = networks.timed[t].time.latency && networks.timed[t].time.latency->measured;
                if (networks.original.latency) j["beside_ms"] = networks.original.latency->median_ms;
                j["foretold_ms"] = c.foretold_ms;
                j["finalist"] = names[t], j["chosen"] = networks.best == t, j["plan"] = json::parse(write_plan(networks.timed[t].input.plan));
            }
        all.push_back(std::move(j));
    }
    return all;
}

}  // namespace loopegg
