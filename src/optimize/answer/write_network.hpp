// The returned network in the forms that people use, in an out folder.
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "base/progress.hpp"
#include "graph/graph.hpp"

namespace loopegg {

// Facts about the run, for model.onnx's metadata_props and for network.py, so that they stay with the file. By name: the version, the target, both latencies,
// the expected loss, and the plan. `result` is result.json, and `plan` the text of plan.json.
std::map<std::string, std::string> about_run(const nlohmann::json& result, const std::string& plan);

// model.json, weights.safetensors, model.onnx and network.py; `about` as about_run gives it.
void write_network(Graph graph, const Weights& weights, const std::map<std::string, std::string>& about, const std::filesystem::path& out, Progress& progress);

// Puts the compiled network into the out folder itself, too. It makes links, because weights are large.
void link_artifact(const std::filesystem::path& from, const std::filesystem::path& out);

}  // namespace loopegg
