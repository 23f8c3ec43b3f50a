// '--target all': what was chosen on this machine, compiled for every other target too, with what it would take there.
#include <fmt/format.h>

#include "backends/bundle.hpp"
#include "backends/network_measure.hpp"
#include "backends/target.hpp"
#include "base/error.hpp"
#include "graph/carry_weights.hpp"
#include "optimize/stages.hpp"

namespace loopegg {
namespace {

using nlohmann::json;

json latency_json(const Latency& l) { return {{"median_ms", l.median_ms}, {"iqr_ms", l.iqr_ms}, {"n", l.n}, {"target", l.target}, {"measured", l.measured}}; }

// One network on one target. Schedules are the target's good defaults: nothing was tuned where nothing can be timed.
json compiled_for(const Target& target, const Graph& graph, const Weights& weights, const std::filesystem::path& folder, Progress& progress) {
    const CompiledNetwork files = compile_network(graph, weights, {}, target, folder, &progress);
    json j = latency_json(estimate_network(graph, weights, {}, target));
    j["kernels"] = files.kernels, j["folder"] = folder.filename().string();
    if (target.reach == Reach::bundle) {
        const BundleReport bundle = write_bundle({}, &graph, &weights, {}, target, folder / "bundle");
        j["bundle"] = folder.filename().string() + "/bundle";
        if (!bundle.left_out.empty()) j["left_out"] = bundle.left_out;
    }
    return j;
}

}  // namespace

json compile_for_others(const OptimizeRequest& request, const Input& input, const Selection& selection, const Confirmed& confirmed, Progress& progress) {
    const Graph& chosen = confirmed.keep_original ? input.graph : selection.chosen.graph;
    const Weights weights = confirmed.keep_original ? input.weights : carry_weights(input.graph, input.weights, chosen, request.seed);
    json all = json::array();
    for (const Target& target : all_targets()) {
        if (target.name == request.target) continue;
        json j{{"target", target.name}, {"reach", to_string(target.reach)}, {"summary", target.summary}};
        try {   // what one target cannot do costs that target alone
            const std::filesystem::path folder = request.out / target.name;
            j["original"] = compiled_for(target, input.graph, input.weights, folder / "original", progress);
            j["optimized"] = compiled_for(target, chosen, weights, folder / "optimized", progress);
            j["speedup"] = j["original"]["median_ms"].get<double>() / j["optimized"]["median_ms"].get<double>();
        } catch (const UserError& e) {
            j["why"] = e.diagnostics().front().message;
        }
        all.push_back(std::move(j));
    }
    return all;
}

}  // namespace loopegg
