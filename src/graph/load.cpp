#include "graph/load.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/number.hpp"
#include "base/regular_file.hpp"
#include "graph/model_json.hpp"
#include "graph/onnx/onnx.hpp"
#include "graph/safetensors.hpp"
#include "graph/weights.hpp"
#include "graph/zoo/zoo.hpp"

namespace loopegg {

// Our files are JSON, and ONNX's begin with the tag of a field.
bool is_onnx(const std::string& model) {
    if (model.starts_with("zoo:")) return false;
    std::string extension = std::filesystem::path(model).extension().string();
    std::transform(extension.begin(), extension.end(), extension.begin(), [](unsigned char c) { return std::tolower(c); });
    if (extension == ".onnx") return true;
    if (extension == ".json") return false;
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(model, ignored)) return false;
    const std::string first = read_part(model, 0, 1);
    return !first.empty() && std::string_view("\x08\x3A\x42\x12").find(first[0]) != std::string_view::npos;
}

void add_shape(OnnxReading& how, const std::string& text) {
    const std::size_t equals = text.rfind('=');
    Shape shape;
    bool good = equals != std::string::npos && equals > 0;
    for (std::size_t at = equals + 1; good;) {
        const std::size_t end = std::min(text.find('x', at), text.size());
        const auto size = number_in<std::int64_t>(std::string_view(text).substr(at, end - at)).value_or(0);
        good = size >= 1 && size <= 1 << 30;
        shape.push_back(size);
        if (end == text.size()) break;
        at = end + 1;
    }
    if (!good) throw UsageError(fmt::format("a shape is given as NAME=1x3x224x224, not as '{}'", text));
    how.shapes[text.substr(0, equals)] = shape;
}

Graph load_graph(const std::string& model, const OnnxReading& how, std::vector<std::string>* notes) {
    if (model.starts_with("zoo:")) return zoo_graph(model.substr(4));
    if (is_onnx(model)) {
        Model read = read_onnx(model, how);
        if (notes) *notes = std::move(read.notes);
        return std::move(read.graph);
    }
    return read_model(std::filesystem::path(model));
}

bool brings_weights(const std::string& model, const Graph& graph) { return is_onnx(model) || !graph.weights_file.empty(); }

Model load_model(const std::string& model, std::uint64_t seed, const OnnxReading& how) {
    if (is_onnx(model)) return read_onnx(model, how);
    Model loaded{load_graph(model), {}};
    if (!brings_weights(model, loaded.graph)) {
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
