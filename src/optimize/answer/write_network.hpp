// The returned network in the forms that people use, in an out folder.
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "base/progress.hpp"
#include "graph/graph.hpp"

namespace loopegg {

// model.json, weights.safetensors, model.onnx and network.py; `about` as about_run gives it.
void write_network(Graph graph, const Weights& weights, const std::map<std::string, std::string>& about, const std::filesystem::path& out, Progress& progress);

// Puts the compiled network into the out folder itself, too. It makes links, because weights are large.
void link_artifact(const std::filesystem::path& from, const std::filesystem::path& out);

}  // namespace loopegg
