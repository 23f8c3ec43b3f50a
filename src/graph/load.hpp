// One way in for every command: a model.json, an .onnx file, or "zoo:NAME".
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "graph/graph.hpp"

namespace loopegg {

struct Model {
    Graph graph;
    Weights weights;
};

Graph load_graph(const std::string& model);

// The weights come from the file that the model names (checked against the graph), or from the seed.
Model load_model(const std::string& model, std::uint64_t seed = 0);

// Writes PATH and, beside it, PATH's stem + ".safetensors"; the graph's weights_file is set to that.
void save_model(Graph graph, const Weights& weights, const std::filesystem::path& path);

}  // namespace loopegg
