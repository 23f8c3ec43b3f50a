// '--target all': compiles the network that was chosen on this machine for every other target too, with estimates of its time there.
#include <fmt/format.h>

#include "backends/measure/network_measure.hpp"
#include "backends/measure/roofline.hpp"
#include "backends/network/bundle.hpp"
#include "backends/target/schedule_rules.hpp"
#include "backends/target/target.hpp"
#include "base/error.hpp"
#include "base/whole_folder.hpp"
#include "optimize/answer/answer.hpp"

namespace loopegg {
namespace {

using nlohmann::json;

// Nothing can be timed on those targets. So CPUs get that of the good first schedules which the estimate finds best, and GPUs get the default schedule.
Schedules estimated_best(const Graph& graph, const Target& target) {
    constexpr std::size_t tried = 64;
    Schedules best;
    if (target.gpu()) return best;
    for (const auto& [site, nest] : fused_nests(graph, {}, target)) {
        double least = estimate_latency(nest, target).median_ms;
        for (const Term& t : schedule_rules(target)->schedules(nest, tried))
            if (const double ms = estimate_latency(t, target).median_ms; ms < least) least = ms, best[site] = t;
    }
    return best;
}

json compiled_for(const Target& target, const Graph& graph, const Weights& weights, const std::filesystem::path& folder, Progress& progress) {
    const Schedules schedules = estimated_best(graph, target);
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
            j["original"] = compiled_for(target, read.graph, read.weights, folder / "original", run.progress);
            j["optimized"] = compiled_for(target, returned.graph, returned.weights, folder / "optimized", run.progress);
            j["speedup"] = j["original"]["median_ms"].get<double>() / j["optimized"]["median_ms"].get<double>();
        } catch (const UserError& e) {
            j["why"] = e.diagnostics().front().message;
        }
        all.push_back(std::move(j));
    }
    return all;
}

}  // namespace loopegg
