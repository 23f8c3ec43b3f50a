#include "optimize/answer/rounding_guard.hpp"

#include <fmt/format.h>

#include "backends/network/rounding_error.hpp"
#include "fisher/data.hpp"
#include "graph/weights.hpp"

namespace loopegg {
namespace {

constexpr std::int64_t images = 32;

struct Inputs {
    std::vector<std::vector<Tensor>> all;
    std::string source;
};

// The images of the capacity guard, where the network takes one input; random numbers for other networks.
Inputs inputs_for(const OptimizeRequest& request, const Graph& graph) {
    Inputs in;
    const std::int64_t batch = std::max<std::int64_t>(1, graph.inputs[0].shape.empty() ? 1 : graph.inputs[0].shape[0]), count = (images + batch - 1) / batch;
    if (graph.inputs.size() == 1 && graph.inputs[0].shape.size() == 4) {
        const BatchSet set = load_batches(request.data, graph, batch, count, request.seed);
        in.source = set.source;
        for (const Batch& b : set.batches) in.all.push_back({Tensor{b.shape, b.images}});
        return in;
    }
    in.source = "normal noise";
    for (std::int64_t i = 0; i < count; ++i) {
        in.all.emplace_back();
        for (const GraphInput& g : graph.inputs) in.all.back().push_back(normal_tensor(g.shape, request.seed + static_cast<std::uint64_t>(i), g.name));
    }
    return in;
}

}  // namespace

nlohmann::json rounding_evidence(const Run& run, const Graph& graph, const Weights& weights, const Schedules& schedules) {
    const OptimizeRequest& request = run.request;
    if (request.allowed.empty()) return nullptr;
    const Inputs inputs = inputs_for(request, graph);
    const RoundingError e = rounding_error(graph, weights, schedules, run.target, inputs.all);
    if (e.sites == 0) return nullptr;
    const bool allowed = e.largest <= request.max_rounding_error;
    return {
        {"roundings", request.allowed},
        {"sites", e.sites},
        {"allowed", allowed},
        {"largest", std::isfinite(e.largest) ? nlohmann::json(e.largest) : nlohmann::json("infinite")},
        {"mean", std::isfinite(e.mean) ? nlohmann::json(e.mean) : nlohmann::json("infinite")},
        {"limit", request.max_rounding_error},
        {"outputs", e.outputs},
        {"same_answer", e.same_answer},
        {"data", inputs.source},
        {"why", fmt::format(
                    "outputs are at most {:.2g} of the largest one away from float32's on {} inputs ({}), and {:.2g} is allowed; {} of {} give the same answer",
                    e.largest, e.outputs, inputs.source, request.max_rounding_error, e.same_answer, e.outputs)}};
}

}  // namespace loopegg
