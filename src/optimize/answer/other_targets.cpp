// '--target all': compiles the network that was chosen on this machine for every other target too, with estimates of its time there.
#include <fmt/format.h>

#include "backends/measure/network_measure.hpp"
#include "backends/measure/roofline.hpp"
#include "backends/network/bundle.hpp"
#include "backends/target/target.hpp"
#include "backends/target/target_rules.hpp"
#include "base/atomic_directory.hpp"
#include "base/error.hpp"
#include "nest/term/value.hpp"
#include "optimize/answer/answer.hpp"
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

}  // namespace

json compile_for_others(const Answer& answer) {
    const Run& run = answer.run;
    const OptimizeRequest& request = run.request;
    const Network &read = run.read.network, &returned = answer.returned();
    json all = json::array();
    for (Target& target : all_targets()) {
        if (target.name == request.target) continue;
        target.rules = rules_file(request.rules);
        json j{{"target", target.name}, {"reach", to_string(target.reach)}, {"summary", target.summary}};
        try {  // a target that fails does not affect the others
            const std::filesystem::path folder = request.out / target.name;
            for (const auto& [key, network] : {std::pair("original", &read), {"optimized", &returned}})
                j[key] = compiled_for(target, *network, estimated_best(network->graph, target, request.strict_fp), folder / key, run.progress);
            j["speedup"] = j["original"]["median_ms"].get<double>() / j["optimized"]["median_ms"].get<double>();
        } catch (const UserError& e) {
            j["why"] = e.diagnostics().front().message;
        }
        all.push_back(std::move(j));
    }
    return all;
}

}  // namespace loopegg
