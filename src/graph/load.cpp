#include "graph/load.hpp"

#include "base/files.hpp"
#include "graph/model_json.hpp"
#include "graph/onnx/onnx.hpp"
#include "graph/safetensors.hpp"
#include "graph/weights.hpp"
#include "graph/zoo/zoo.hpp"

namespace loopegg {

Graph load_graph(const std::string& model) {
    if (model.starts_with("zoo:")) return zoo_graph(model.substr(4));
    if (model.ends_with(".onnx")) return read_onnx(model).graph;
    return read_model(std::filesystem::path(model));
}

Model load_model(const std::string& model, std::uint64_t seed) {
    if (model.ends_with(".onnx")) return read_onnx(model);
    Model loaded{load_graph(model), {}};
    if (loaded.graph.weights_file.empty()) {
        loaded.weights = initial_weights(loaded.graph, seed);
    } else {
        std::filesystem::path file = std::filesystem::path(model).parent_path() / loaded.graph.weights_file;
        loaded.weights = read_safetensors(file);
        check_weights(loaded.graph, loaded.weights, file.string());
    }
    return loaded;
}

void save_model(Graph graph, const Weights& weights, const std::filesystem::path& path) {
    std::filesystem::path file = path;
    file.replace_extension(".safetensors");
    graph.weights_file = file.filename().string();
    write_file(file, write_safetensors(weights));
    write_file(path, write_model(graph));
}

}  // namespace loopegg
