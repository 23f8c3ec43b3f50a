// How every command reads a network: from a model.json, an ONNX file, or "zoo:NAME".
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace loopegg {

struct Model {
    Graph graph;
    Weights weights;
    std::vector<std::string> notes{};  // what a reader took for granted, in words for the user
};

// What a file leaves open, and what the user allows.
struct OnnxReading {
    std::map<std::string, Shape> shapes{};  // of inputs, by name
    std::int64_t batch = 0;                 // the first dimension of inputs that leave it open; 0: nothing said
    bool as_float32 = false;                // float16 and quantized models are computed in float32
    bool upgrade = true;                    // ONNX's own converter brings old opsets to a newer one; otherwise they are read as they are
};

// Whether a model is an ONNX file, by its name, or, where the name is inconclusive, by its first byte.
bool is_onnx(const std::string& model);

// "x=1x3x224x224". Throws UsageError.
void add_shape(OnnxReading& how, const std::string& text);

Graph load_graph(const std::string& model, const OnnxReading& how = {}, std::vector<std::string>* notes = nullptr);

// Whether a model brings weights: an ONNX file always does. `graph` was read from it.
bool brings_weights(const std::string& model, const Graph& graph);

// The weights come from the file that the model names (checked against the graph), or from the seed.
Model load_model(const std::string& model, std::uint64_t seed = 0, const OnnxReading& how = {});

// Writes PATH and, next to it, PATH's stem + ".safetensors"; the graph's weights_file is set to that.
void save_model(Graph graph, const Weights& weights, const std::filesystem::path& path);

}  // namespace loopegg
