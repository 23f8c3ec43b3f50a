#include "optimize/optimize.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "backends/measure/cold_weights.hpp"
#include "backends/measure/network_measure.hpp"
#include "backends/measure/tvm_measurer.hpp"
#include "backends/target/target.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"
#include "base/places.hpp"
#include "base/scratch.hpp"
#include "base/text.hpp"
#include "fisher/evidence.hpp"
#include "graph/architecture_hash.hpp"
#include "graph/load.hpp"
#include "graph/model_json.hpp"
#include "optimize/charged_once.hpp"
#include "optimize/class_rules.hpp"
#include "optimize/finalists.hpp"
#include "optimize/rounds.hpp"
#include "optimize/site_trial.hpp"
#include "optimize/stages.hpp"
#include "optimize/whole_networks.hpp"
#include "rules/load.hpp"
#include "store/store_cost.hpp"

namespace loopegg {
namespace {

// Times the stages and keeps their seconds for the result.
class StageLog {
public:
    explicit StageLog(Progress& progress) : progress_(progress) {}
    template <class F>
    auto run(const char* name, std::int64_t total, F&& f) {
        progress_.stage(name, total);
        const auto start = std::chrono::steady_clock::now();
        auto value = f();
        seconds[name] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        return value;
    }
    void done(const std::string& summary) { progress_.finish(summary); }
    nlohmann::json seconds = nlohmann::json::object();

private:
    Progress& progress_;
};

std::unique_ptr<Oracle> oracle_for(const OptimizeRequest& request, const Input& input) {
    OracleOptions options;
    options.guard = request.guard, options.capacity = request.capacity, options.data = request.data, options.seed = request.seed;
    if (!options.capacity && request.guard == default_guard) {  // the threshold is meant for the default guard: other guards keep their own
        const RuleBook book = load_rules(rules_file(request.rules), {.judge = false, .deep = false});
        if (const Phase* phase = book.find_phase("discover")) options.capacity = phase->capacity;
        // The stricter threshold holds. An empty optional compares as less than any value.
        options.capacity = std::max(options.capacity, shipped_capacity(to_string(classify_architecture(input.graph).kind)));
    }
    options.trained = input.trained ? &input.weights : nullptr;
    options.taught = input.trainings.taught;
    options.store = default_evidence();
    return make_oracle(std::move(options));
}

bool has_phase(const OptimizeRequest& request, const char* phase) {
    return load_rules(rules_file(request.rules), {.judge = false, .deep = false}).find_phase(phase) != nullptr;
}

// Rules over several sites stand in the rule file. With a file that has none, no other network is searched, unless a rival's search is asked for.
bool searches_networks(const OptimizeRequest& request) { return request.search != "rules" || has_phase(request, "networks"); }

// What the sites take together with their whole domains.
double original_ms(const Sites& sites, const Tuning& tuning) {
    double ms = 0;
    for (const auto& [site, time] : site_times(sites, tuning)) ms += time;
    return ms > 0 ? ms : std::numeric_limits<double>::infinity();
}

// Why rules on single sites are not tried any more; empty where they are tried.
std::string why_no_sites(const OptimizeRequest& request, const WholeNetworks& networks, const NetworkVerdict& start) {
    if (networks.best && request.limits_time()) return "the network takes no longer than it may, and loses least";
    if (request.search != "rules" && request.search != "sites") return "--search " + request.search + " changes no single sites";
    return networks.best && !has_room(start) ? "the network uses up what may be lost" : "";
}

// Whether rules on single sites are tried from another network than the one that the search found. Where a limit decides which network is returned, another
// start has no use. Where times come in rounds, the trial is not worth a round.
bool tries_elsewhere(const OptimizeRequest& request, const WholeNetworks& networks, const NetworkVerdict& start) {
    if (!networks.best || has_room(start) || request.search != "rules") return false;
    const OptimizeRequest unlimited;
    const bool limits = request.limits_time() || request.max_parameters != unlimited.max_parameters || std::isfinite(request.max_memory_mb);
    return !limits && target_of(request).reach != Reach::bundle && has_phase(request, "trial");
}

std::size_t changed_sites(const Input& input, const Selection& selection) {
    std::size_t changed = 0;
    for (std::size_t s = 0; s < input.sites.all.size(); ++s) changed += selection.chosen.variant[s] != input.sites.all[s].kind;
    return changed;
}

std::string say(const Measured& m) {
    if (!m.latency) return "not measured (" + m.why + ")";
    return fmt::format("{:.3f} ms{}", m.latency->median_ms, m.latency->measured ? "" : " (estimated)");
}

std::string say(const SiteTrial& trial) {
    std::set<std::string> timed;
    for (std::size_t v = trial.network.sites.kinds.size(); v < trial.found.variants.size(); ++v)
        if (trial.tuning.best[v].best.latency) timed.insert(trial.found.variants[v].effect);
    return fmt::format("{} configurations from {}, timed: {}; {:.3f} ms beside {:.3f}", trial.found.configurations, trial.from,
                       join(std::vector<std::string>(timed.begin(), timed.end()), ", "), trial.ms, trial.beside_ms);
}

// Where whole networks were searched, most of the time for tuning is spent. The original and the network that is returned each get such a share once more,
// and such a share for their layouts (layout_times.cpp takes a part of it).
constexpr double last_tuning_share = 0.25, last_layouts_share = 0.5;

// Where the run gets its times from: workers on this machine, a board, or rounds of bundles.
class Times {
public:
    Times(const OptimizeRequest& request, const Input& input, const MeasurerOptions& options) : target_(target_of(request)) {
        if (target_.reach != Reach::bundle) {
            workers_ = std::make_unique<TvmMeasurer>(options);
            nests_.emplace(*workers_);
            return;
        }
        if (!request.rounds.empty()) {
            rounds_.emplace(request.rounds, fmt::format("{} ({:.8})", input.graph.name, hash_of(write_model(input.graph)).hex()), target_,
                            RoundLimits{request.most_rounds, request.round_programs});
            rounds_->take_in(options.store);
        }
        elsewhere_ = std::make_unique<RoundMeasurer>(target_, options.store, rounds_ ? rounds_->failed() : std::map<Hash128, std::string>{});
        nests_.emplace(*elsewhere_);
    }

    Timing timing() {
        if (elsewhere_)
            return {*nests_, [this](const Graph& graph, const Weights& weights, const Schedules& schedules, bool last) {
                        return elsewhere_->network(graph, weights, schedules, last ? RoundMeasurer::Use::last : RoundMeasurer::Use::beside);
                    }};
        if (target_.reach == Reach::here) return {*nests_, {}};
        return {*nests_, [this](const Graph& graph, const Weights&, const Schedules& schedules, bool) {
                    return sum_of_steps(network_term(graph, schedules, target_), target_, *workers_);
                }};
    }

    bool in_rounds() const { return rounds_.has_value(); }
    nlohmann::json next_round(Progress& progress) { return rounds_->next(*elsewhere_, progress); }

private:
    Target target_;
    std::unique_ptr<TvmMeasurer> workers_;
    std::unique_ptr<RoundMeasurer> elsewhere_;
    std::optional<ChargedOnce> nests_;  // one of the two
    std::optional<Rounds> rounds_;
};

}  // namespace

std::filesystem::path rules_file(const std::string& rules) {
    const bool a_path = rules.find('/') != std::string::npos || rules.ends_with(".rules");
    if (a_path) return rules;
    const std::filesystem::path file = shipped("rules/" + rules + ".rules");
    if (!std::filesystem::exists(file)) throw UserError("there are no rules named '" + rules + "': expected a file that ends in .rules, or discover or exact");
    return file;
}

Target target_of(const OptimizeRequest& request) {
    Target target = allowing(find_target(request.target), request.allowed);
    target.rules = rules_file(request.rules);
    return target;
}

Input read_input(const OptimizeRequest& request) {
    Input input;
    Model model = load_model(request.model.string(), request.seed);
    input.trained = !model.graph.weights_file.empty();
    input.graph = with_batch(std::move(model.graph), request.batch);
    input.weights = std::move(model.weights);
    input.sites = sites_of(input.graph, request.keep);
    if (!request.trainings.empty()) input.trainings = read_trainings(request.trainings, input.graph, rules_file(request.rules));
    return input;
}

nlohmann::json optimize(const OptimizeRequest& request, Progress& progress) {
    StageLog log(progress);
    const StoreCost before = store_cost();
    objective_for(request.objective, find_target(request.target));  // complains about a wrong word before the work begins

    Input input = log.run("read", 0, [&] { return read_input(request); });
    class_name(request.architecture, input.graph);
    log.done(fmt::format("{}: {} sites, {} distinct nests", input.graph.name, input.sites.all.size(), input.sites.kinds.size()));

    auto oracle = oracle_for(request, input);
    const ScratchFolder kernels(request.out / ".loopegg-kernels");  // the kernels that tuning compiles, until the networks are made from them
    MeasurerOptions measuring;
    measuring.shelf = kernels.path();
    measuring.wait_seconds = std::min(measuring.wait_seconds, request.tune_seconds);
    measuring.note = [&](const std::string& line) { progress.note(line); };
    measuring.cold_bytes = cold_bytes_for(input.weights);
    Times times(request, input, measuring);
    const Timing timing = times.timing();
    OptimizeRequest left = request, last = request;  // what is left of the budget and of the time, for the last tuning and for its layouts

    WholeNetworks networks = log.run("networks", request.budget, [&] {
        return searches_networks(request) ? find_networks(request, input, *oracle, timing, KernelShelf(kernels.path()), progress) : WholeNetworks{};
    });
    const NetworkVerdict start = networks.best ? networks.judged[networks.timed[*networks.best].candidate].judged : NetworkVerdict{};
    if (!networks.judged.empty()) {
        left.budget = std::max<std::int64_t>(1, left.budget - networks.asked);
        left.tune_seconds *= last_tuning_share, last.tune_seconds *= last_layouts_share;
    }
    log.done(networks.judged.empty()
                 ? std::string("no rule for whole networks")
                 : fmt::format("{} judged, {} timed; going on from {}", networks.judged.size(), networks.timed.size(),
                               networks.best ? networks.judged[networks.timed[*networks.best].candidate].origin : std::string("the original")));

    // Rules on single sites go on from the network that the search found. Where that network may lose nothing more, they start from another one, and their
    // network is returned if it is faster.
    const std::string no_sites = why_no_sites(request, networks, start);
    std::optional<SiteTrial> trial;
    if (tries_elsewhere(request, networks, start)) {
        trial = log.run("sites", 0, [&] { return try_sites(request, input, networks, *oracle, timing, progress); });
        log.done(say(*trial));
    }
    const bool pays = trial && trial->pays();
    const Input network = pays ? trial->network : networks.best ? networks.timed[*networks.best].input : input;
    BesideOriginal beside(*oracle, input.graph, std::max(1e-6, kept_share(network.verdict)));
    ClassRules rules;
    Discovery found = log.run("discover", left.budget, [&] {
        if (pays) rules = trial->rules;
        if (pays) return trial->found;
        return no_sites.empty() ? discover_variants(left, network, beside, progress, rules) : originals_only(network.sites, no_sites);
    });
    log.done(fmt::format("{} variants from {} configurations ({} rejected by {})", found.variants.size() - network.sites.kinds.size(), found.configurations,
                         found.rejected, request.guard));

    Tuning tuning = log.run("tune", 0, [&] {
        // The original gets as much time for tuning as the network that it is compared with: the speed-up is over the fastest original that we know.
        if (network.read) networks.original_tuning = tune_variants(left, input, originals_only(input.sites), timing.nests, progress);
        return tune_variants(left, network, found, timing.nests, progress, {.trials = rules.name == "all" ? 0 : shipped_trials(rules.name)});
    });
    log.done(fmt::format("{} schedules tried, {} failed", tuning.compiled, tuning.failed));

    // The limit is for the network as a whole, which is timed below. Where single sites alone change, it is for the sum of their times.
    left.max_latency_ms = network.read ? std::numeric_limits<double>::infinity() : request.allowed_ms(original_ms(network.sites, tuning));
    Selection selection = log.run("choose", 0, [&] { return select(left, network, found, tuning, beside, progress); });
    if (network.read && selection.chosen.variant != original_variants(network.sites))  // the answer compares with the network that was read
        selection.chosen.verdict = NetworkJudge(*oracle, input.graph).judge({&selection.chosen.graph, 1}).front().verdict;
    log.done(fmt::format("{} sites changed, {} whole networks refused on the way", changed_sites(network, selection), selection.backed_off));

    Confirmed confirmed = log.run("confirm", 0, [&] {
        return confirm(last, {network, networks.original_tuning, tuning, selection}, timing, KernelShelf(kernels.path()), progress);
    });
    log.done(fmt::format("original {}, chosen {}", say(confirmed.original.time), say(confirmed.optimized.time)));

    if (const auto& time = confirmed.optimized.time.latency, &whole = confirmed.original.time.latency; time && whole)
        if (const double allowed = request.allowed_ms(whole->median_ms); time->median_ms > allowed)
            progress.note(fmt::format("the network takes {:.3f} ms, and {} allows {:.3f}: a larger --max-loss or another --seed may find a faster one",
                                      time->median_ms, allowed < request.max_latency_ms ? "--min-speedup" : "--max-latency", allowed));

    const bool back = confirmed.keep_original && network.read;  // back to the network that was read, and the answer is about that network
    if (back) found = originals_only(input.sites, found.stop), tuning = networks.original_tuning;
    const Input& told = back ? input : network;
    const Outcome outcome{told, found, tuning, selection, confirmed};
    nlohmann::json result = result_of(request, outcome);
    result["search"] = request.search, result["networks"] = networks_json(networks);
    if (trial) result["site_trial"] = site_trial_json(*trial);
    add_class(result, rules);
    // A trial asks about some sites alone, so its counts say nothing about a run of the class.
    const std::optional<StoreAddress> counts = pays ? std::nullopt : std::optional(default_store());
    result["counts"] = count_run(counts, rules, told, found, tuning, returned_variants(told, selection, confirmed));
    if (request.all_targets) {
        result["targets"] = log.run("targets", 0, [&] { return compile_for_others(request, told, selection, confirmed, progress); });
        log.done(fmt::format("compiled for {} more", result["targets"].size()));
    }
    log.run("write", 0, [&] {
        write_out(request, outcome, *oracle, result, progress), write_finalists(request.out, networks);
        return 0;
    });
    if (times.in_rounds()) {
        result["rounds"] = log.run("round", 0, [&] { return times.next_round(progress); });
        log.done(result["rounds"]["waiting"].is_null() ? "nothing more is measured"
                                                       : fmt::format("{} programs", result["rounds"]["waiting"]["programs"].get<int>()));
    }
    double total = 0;
    for (const auto& s : log.seconds) total += s.get<double>();
    log.seconds["total"] = total;
    result["seconds"] = log.seconds;
    const StoreCost cost = store_cost() - before;
    result["store"] = {{"calls", cost.calls}, {"seconds", cost.seconds}};
    write_file(request.out / "result.json", result.dump(1));
    log.done("");
    return result;
}

}  // namespace loopegg
