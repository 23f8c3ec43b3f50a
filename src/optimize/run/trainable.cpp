#include "optimize/run/trainable.hpp"

#include "backends/network/int8_calibration.hpp"
#include "base/files.hpp"
#include "graph/model_json.hpp"
#include "graph/pytorch/network_py.hpp"
#include "graph/safetensors.hpp"

namespace loopegg {

void write_trainable(const std::filesystem::path& folder, Graph graph, const Weights* weights, const Plan& plan) {
    std::filesystem::create_directories(folder);
    graph.weights_file = weights ? "weights.safetensors" : "";
    if (weights) write_file(folder / graph.weights_file, write_safetensors(without_int8_scales(*weights)));
    write_file(folder / "plan.json", write_plan(plan));
    write_file(folder / "model.json", write_model(graph));
    write_file(folder / "network.py", network_py(graph));
}

}  // namespace loopegg
