// Compiles the chosen network and the original with the same effort and measures both end to end, side by side.
#include <fmt/format.h>

#include "backends/target.hpp"
#include "graph/carry_weights.hpp"
#include "optimize/stages.hpp"

namespace loopegg {
namespace {

Schedules schedules_of(const Sites& sites, const Tuning& tuning, const std::vector<std::size_t>& variant) {
    Schedules schedules;
    for (std::size_t s = 0; s < sites.all.size(); ++s)
        if (const TunedNest& t = tuning.best[variant[s]]; t.best.latency) schedules[sites.all[s].name] = t.nest;
    return schedules;
}

}  // namespace

Confirmed confirm(const OptimizeRequest& request, const Input& input, const Tuning& tuning, const Selection& selection, Progress& progress) {
    const Target target = find_target(request.target);
    const std::vector<std::size_t> original = original_variants(input.sites);
    Confirmed c;
    c.original_files = compile_network(input.graph, input.weights, schedules_of(input.sites, tuning, original), target, request.out / "original", &progress);
    if (selection.chosen.variant == original) {
        c.optimized_files = c.original_files;
        c.keep_original = true, c.why = "no site has a variant that is both faster and admitted by the guard: the original is returned";
        c.original = c.optimized = measure_networks(std::vector{c.original_files.folder}).at(0);
        return c;
    }
    const Weights weights = carry_weights(input.graph, input.weights, selection.chosen.graph, request.seed);
    c.optimized_files = compile_network(selection.chosen.graph, weights, schedules_of(input.sites, tuning, selection.chosen.variant), target,
                                        request.out / "optimized", &progress);
    const std::vector<Measured> times = measure_networks(std::vector{c.original_files.folder, c.optimized_files.folder});
    c.original = times[0], c.optimized = times[1];
    if (!c.optimized.latency) c.keep_original = true, c.why = "the chosen network could not be measured (" + c.optimized.why + "): the original is returned";
    else if (c.original.latency && c.optimized.latency->median_ms >= c.original.latency->median_ms)
        c.keep_original = true, c.why = fmt::format("the chosen network takes {:.3f} ms and the original {:.3f} ms: the original is returned",
                                                    c.optimized.latency->median_ms, c.original.latency->median_ms);
    return c;
}

}  // namespace loopegg
