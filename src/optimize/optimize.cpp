#include "optimize/optimize.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "backends/measure/cold_weights.hpp"
#include "base/scratch.hpp"
#include "backends/target/target.hpp"
#include "backends/measure/tvm_measurer.hpp"
#include "base/files.hpp"
#include "base/places.hpp"
#include "fisher/evidence.hpp"
#include "graph/load.hpp"
#include "optimize/class_rules.hpp"
#include "optimize/stages.hpp"
#include "rules/load.hpp"

namespace loopegg {
namespace {

// Times the stages and keeps their seconds for the result.
class StageLog {
public:
    explicit StageLog(Progress& progress) : progress_(progress) {}
    template <class F> auto run(const char* name, std::int64_t total, F&& f) {
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
    if (!options.capacity && request.guard == default_guard) {   // a threshold is one guard's: another keeps its own
        const RuleBook book = load_rules(rules_file(request.rules), {.judge = false, .deep = false});
        if (const Phase* phase = book.find_phase("discover")) options.capacity = phase->capacity;
        options.capacity = std::max(options.capacity, shipped_capacity(to_string(classify_architecture(input.graph).kind)));   // the stricter one; none is less than any
    }
    options.trained = input.trained ? &input.weights : nullptr;
    options.store = default_evidence_file();
    return make_oracle(std::move(options));
}

Discovery discover_variants(const OptimizeRequest& request, const Input& input, CapacityOracle& oracle, Progress& progress, ClassRules& rules) {
    const RuleBook book = load_rules(rules_file(request.rules));
    const Phase* phase = book.find_phase("discover");
    if (!phase) return originals_only(input.sites);
    // What never paid within the usual budget may within a larger one: who gives it wants to see everything.
    const bool wide = request.budget > OptimizeRequest{}.budget;
    rules = rules_for_class(book, *phase, class_name(request.architecture, input.graph), wide ? CountTable{} : known_counts(default_store_file()));
    if (!rules.searches) return originals_only(input.sites, "no neural rule is for this class of architecture");
    DeskOptions options;
    options.budget = request.budget;
    if (!rules.asked.empty()) {   // what the rules asked when they were counted, or as much less as the budget is smaller
        const double part = std::min(1.0, static_cast<double>(request.budget) / rules.asked_by_all);
        std::int64_t all = 0;
        for (const auto& [rule, questions] : rules.asked) all += options.expected[rule] = static_cast<std::int64_t>(std::ceil(part * questions));
        options.budget = std::clamp<std::int64_t>(all, 1, request.budget);
    }
    options.channels_multiple = request.channels_multiple;
    const std::string passes = request.passes.empty() ? shipped_passes(rules.name) : request.passes;
    Discovery found = discover(input.graph, input.sites, rules.book, *phase, oracle, options, progress, passes.empty() ? PassOrder{} : passes_named(passes));
    for (Variant& v : found.variants) v.unpaid = !searched_for(rules, v);
    return found;
}

std::size_t changed_sites(const Input& input, const Selection& selection) {
    std::size_t changed = 0;
    for (std::size_t s = 0; s < input.sites.all.size(); ++s) changed += selection.chosen.variant[s] != input.sites.all[s].kind;
    return changed;
}

std::string say(const Measured& m) { return m.latency ? fmt::format("{:.3f} ms", m.latency->median_ms) : "not measured (" + m.why + ")"; }

}  // namespace

std::filesystem::path rules_file(const std::string& rules) {
    const bool a_path = rules.find('/') != std::string::npos || rules.ends_with(".rules");
    return a_path ? std::filesystem::path(rules) : shipped("rules/" + rules + ".rules");
}

Target target_of(const OptimizeRequest& request) {
    Target target = find_target(request.target);
    target.rules.insert(target.rules.begin(), rules_file(request.rules));
    return target;
}

Input read_input(const OptimizeRequest& request) {
    Input input;
    Model model = load_model(request.model.string(), request.seed);
    input.trained = !model.graph.weights_file.empty();
    input.graph = with_batch(std::move(model.graph), request.batch);
    input.weights = std::move(model.weights);
    input.sites = sites_of(input.graph, request.keep);
    return input;
}

nlohmann::json optimize(const OptimizeRequest& request, Progress& progress) {
    StageLog log(progress);
    objective_for(request.objective, find_target(request.target));   // a wrong word is told before the work
    std::filesystem::create_directories(request.out);

    Input input = log.run("read", 0, [&] { return read_input(request); });
    log.done(fmt::format("{}: {} sites, {} distinct nests", input.graph.name, input.sites.all.size(), input.sites.kinds.size()));

    auto oracle = oracle_for(request, input);
    ClassRules rules;
    Discovery found = log.run("discover", request.budget, [&] { return discover_variants(request, input, *oracle, progress, rules); });
    log.done(fmt::format("{} variants from {} configurations ({} rejected by {})", found.variants.size() - input.sites.kinds.size(), found.configurations, found.rejected, request.guard));

    const ScratchFolder kernels(request.out / ".loopegg-kernels");   // what tuning compiles, until the networks are made of it
    MeasurerOptions measuring;
    measuring.shelf = kernels.path();
    measuring.cold_bytes = cold_bytes_for(input.weights);
    TvmMeasurer measurer(measuring);
    Tuning tuning = log.run("tune", 0, [&] { return tune_variants(request, input, found, rules.name == "all" ? 0 : shipped_trials(rules.name), measurer, progress); });
    log.done(fmt::format("{} schedules tried, {} failed", tuning.compiled, tuning.failed));

    Selection selection = log.run("choose", 0, [&] { return select(request, input, found, tuning, *oracle, progress); });
    log.done(fmt::format("{} sites changed, {} whole networks refused on the way", changed_sites(input, selection), selection.backed_off));

    Confirmed confirmed = log.run("confirm", 0, [&] { return confirm(request, input, tuning, selection, KernelShelf(kernels.path()), progress); });
    log.done(fmt::format("original {}, chosen {}", say(confirmed.original.time), say(confirmed.optimized.time)));

    nlohmann::json result = result_of(request, input, found, tuning, selection, confirmed);
    add_class(result, rules);
    result["counts"] = count_run(default_store_file(), rules, input, found, tuning, returned_variants(input, selection, confirmed));
    if (request.all_targets) {
        result["targets"] = log.run("targets", 0, [&] { return compile_for_others(request, input, selection, confirmed, progress); });
        log.done(fmt::format("compiled for {} more", result["targets"].size()));
    }
    log.run("write", 0, [&] { write_out(request, input, found, selection, confirmed, *oracle); return 0; });
    double total = 0;
    for (const auto& s : log.seconds) total += s.get<double>();
    log.seconds["total"] = total;
    result["seconds"] = log.seconds;
    write_file(request.out / "result.json", result.dump(1));
    log.done(request.out.string());
    return result;
}

}  // namespace loopegg
