// '--target all': extracts a network for every other target from that target's estimates, and compiles it for that target.
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "backends/measure/network_measure.hpp"
#include "backends/measure/roofline.hpp"
#include "backends/network/bundle.hpp"
#include "backends/target/target.hpp"
#include "backends/target/target_rules.hpp"
#include "base/atomic_directory.hpp"
#include "base/error.hpp"
#include "graph/flops.hpp"
#include "nest/term/value.hpp"
#include "optimize/answer/answer.hpp"
#include "optimize/run/times.hpp"
#include "optimize/tune/algorithms.hpp"

namespace loopegg {
namespace {

using nlohmann::json;

struct Estimated {
    Term nest;
    double ms;
};

// The best of the good first schedules of a nest, the nest itself among them.
Estimated best_schedule(const Term& nest, const Target& target) {
    constexpr std::size_t tried = 64;
    Estimated best{nest, estimate_latency(nest, target).median_ms};
    for (const Term& t : schedule_rules(target)->schedules(nest, tried))
        if (const double ms = estimate_latency(t, target).median_ms; ms < best.ms) best = {t, ms};
    return best;
}

// The row with the best schedule of each of its nests.
Estimated best_row(const Term& row, const Target& target) {
    std::vector<Term> nests;
    double ms = 0;
    for (const Term& nest : nests_of(row[1])) {
        const Estimated best = best_schedule(nest, target);
        nests.push_back(best.nest), ms += best.ms;
    }
    return {with_nests(row, nests), ms};
}

// Nothing can be timed on those targets. So CPUs get what the estimate finds best among the good first schedules of one nest and of every row of nests,
// and GPUs get the default schedule.
Schedules estimated_best(const Graph& graph, const Target& target, bool strict_fp) {
    Schedules best;
    if (target.gpu()) return best;
    const Algorithms algorithms(target);
    for (const auto& [site, nest] : fused_nests(graph, {}, target)) {
        Estimated found = best_schedule(nest, target);
        for (const Term& row : strict_fp ? std::vector<Term>{} : algorithms.rows(nest))
            if (const Estimated other = best_row(row, target); other.ms < found.ms) found = other;
        if (found.nest != nest) best[site] = found.nest;
    }
    return best;
}

json compiled_for(const Target& target, const Network& network, const Schedules& schedules, const std::filesystem::path& folder, Progress& progress) {
    const auto& [graph, weights, sites] = network;
    const CompiledNetwork files = compile_network({graph, weights, schedules}, target, folder, &progress);
    seal_folder(folder);
    json j = latency_json(Measured{estimate_network(graph, schedules, target), ""});
    j["kernels"] = files.kernels, j["folder"] = folder.filename().string();
    if (target.reach == Reach::bundle) {
        const ScheduledNetwork whole[]{{graph, weights, schedules}};
        const BundleReport bundle = write_bundle({}, whole, target, folder / "bundle");
        j["bundle"] = folder.filename().string() + "/bundle";
        if (!bundle.left_out.empty()) j["left_out"] = bundle.left_out;
    }
    return j;
}

// What the run asks of this machine, as a question about another target. A limit in milliseconds is one of this machine: there it is the same speed-up.
OptimizeRequest request_for(const Answer& answer, const Target& target) {
    constexpr int few_trials = 3;  // estimates put the best schedules first
    OptimizeRequest request = answer.run.request;
    request.target = target.name, request.trials = few_trials, request.train = {}, request.rounds.clear(), request.finalists.reset();
    if (request.objective != "memory") request.objective = "latency";
    const auto& original = answer.confirmed.original.time.latency;
    if (std::isfinite(request.max_latency_ms) && original) request.min_speedup = std::max(request.min_speedup, original->median_ms / request.max_latency_ms);
    request.max_latency_ms = std::numeric_limits<double>::infinity();
    return request;
}

// A network for one of the other targets.
struct ForTarget {
    const Network* network;
    const FoundNetwork* found = nullptr;  // null: the network of this machine
    Schedules schedules;
    double ms = 0;
};

// The network that the e-graph has for the target by the target's own estimates, or that of this machine where it is no slower there.
ForTarget best_for(const Answer& answer, const Target& target, const FoundNetworks& found, bool limits_time) {
    const bool strict = answer.run.request.strict_fp;
    const auto with_time = [&](const Network& network, const FoundNetwork* own) {
        ForTarget t{&network, own, estimated_best(network.graph, target, strict)};
        t.ms = estimate_network(network.graph, t.schedules, target).median_ms;
        return t;
    };
    ForTarget of_this_machine = with_time(answer.returned(), nullptr);
    if (!found.best) return of_this_machine;
    const FoundNetwork& best = found.timed[*found.best];
    if (best.network.graph == answer.returned().graph) return of_this_machine;
    ForTarget own = with_time(best.network, &best);
    return limits_time || own.ms < of_this_machine.ms ? own : of_this_machine;  // with a limit of time, the one that loses least was looked for
}

FoundNetworks find_for(const Answer& answer, const Target& target) {
    const OptimizeRequest request = request_for(answer, target);
    Times times(request, answer.run.read.network.graph, target, MeasurerOptions{});
    const Run& run = answer.run;
    return find_networks(Run{request, target, run.book, run.read, run.conditions, run.points, run.oracle, times.timing(), KernelPool(), run.progress});
}

json about_network(const FoundNetwork& found) {
    const ExpectedLoss& l = found.judged.loss;
    return {{"loss", {{"points", l.points}, {"low", l.low}, {"high", l.high}}},
            {"parameters", parameters(found.network.graph)},
            {"macs", macs(found.network.graph)},
            {"plan", json::parse(write_plan(found.plan))}};
}

}  // namespace

json compile_for_others(const Answer& answer) {
    const Run& run = answer.run;
    const OptimizeRequest& request = run.request;
    json all = json::array();
    for (Target& target : all_targets()) {
        if (target.name == request.target) continue;
        target.rules = rules_file(request.rules);
        json j{{"target", target.name}, {"reach", to_string(target.reach)}, {"summary", target.summary}};
        try {  // a target that fails does not affect the others
            const std::filesystem::path folder = request.out / target.name;
            const FoundNetworks found = find_for(answer, target);
            const ForTarget best = best_for(answer, target, found, request.limits_time());
            const Network& read = run.read.network;
            j["original"] = compiled_for(target, read, estimated_best(read.graph, target, request.strict_fp), folder / "original", run.progress);
            j["optimized"] = compiled_for(target, *best.network, best.schedules, folder / "optimized", run.progress);
            j["speedup"] = j["original"]["median_ms"].get<double>() / j["optimized"]["median_ms"].get<double>();
            if (best.found) j["network"] = about_network(*best.found);
        } catch (const UserError& e) {
            j["why"] = e.diagnostics().front().message;
        }
        all.push_back(std::move(j));
    }
    return all;
}

}  // namespace loopegg
