// From a model in memory to files: which batch stays open, and which weights are next to the file.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "graph/onnx/element_types.hpp"
#include "graph/onnx/export.hpp"
#include "graph/onnx/onnx.hpp"
#include "graph/weights.hpp"

namespace loopegg {
namespace {

constexpr std::size_t page = 4096, least_outside = 1024;  // readers map whole pages; small tensors stay inside

std::string symbol_of(const Graph& graph) {
    for (const GraphInput& in : graph.inputs)
        if (!in.batch.empty()) return in.batch;
    return "";
}

// Names the first dimensions that follow the batch, where the nodes for another batch are the same nodes. Answers why not, or nothing.
std::string open_batch(const Graph& graph, OnnxModel& model) {
    const std::string symbol = symbol_of(graph);
    if (symbol.empty()) return "";
    Graph wider = graph;
    for (GraphInput& in : wider.inputs)
        if (!in.batch.empty()) in.shape[0] *= 2;
    std::string why;
    try {
        complete(wider);
        const OnnxModel here = onnx_model(graph, nullptr), there = onnx_model(wider, nullptr);
        if (here.nodes != there.nodes || here.initializers != there.initializers) why = "a node is written for this batch alone";
    } catch (const UserError& e) {
        why = e.diagnostics()[0].message;
    }
    if (!why.empty()) return why;
    auto open = [](OnnxValue& value, const std::string& name) {
        value.symbols.assign(value.shape.size(), "");
        value.shape[0] = -1, value.symbols[0] = name;
    };
    for (std::size_t i = 0; i < graph.inputs.size(); ++i)
        if (!graph.inputs[i].batch.empty()) open(model.inputs[i], graph.inputs[i].batch);
    for (OnnxValue& out : model.outputs)
        if (!out.shape.empty() && wider.shape_of(out.name)[0] != out.shape[0]) open(out, symbol);
    return "";
}

// The values of large tensors, each from a new page on, and out of the model.
std::string move_outside(OnnxModel& model) {
    std::string data;
    for (auto& [name, tensor] : model.initializers) {
        const std::size_t bytes = tensor.floats.size() * sizeof(float);
        if (bytes < least_outside || element_type(tensor) != onnx_type::float32) continue;
        data.resize((data.size() + page - 1) / page * page);
        model.outside[name] = data.size();
        data.append(reinterpret_cast<const char*>(tensor.floats.data()), bytes);
        std::vector<float>().swap(tensor.floats);
    }
    return data;
}

}  // namespace

OnnxFiles onnx_files(const Graph& graph, const Weights& weights, const std::string& file_name, const OnnxWriting& how) {
    check_weights(graph, weights, "the weights to export");
    OnnxModel model = onnx_model(graph, &weights, how.rounded);
    OnnxFiles files;
    if (const auto lost = std::count_if(how.rounded.begin(), how.rounded.end(), [](const auto& site) { return site.second == "tf32"; }); lost > 0)
        files.notes.push_back(fmt::format("{} sites multiply TF32 numbers, which ONNX has no type for: {} has them in float32", lost, file_name));
    if (std::string why = open_batch(graph, model); !why.empty())
        files.notes.push_back(fmt::format("the batch was open ('{}') and is {} in {}: {}", symbol_of(graph), graph.inputs[0].shape[0], file_name, why));
    for (const auto& [key, words] : how.about) model.metadata[key] = words;
    std::uint64_t bytes = 0;
    for (const auto& [name, tensor] : model.initializers) bytes += tensor.floats.size() * sizeof(float);
    if (bytes > how.max_inside) model.data_file = file_name + ".data", files.data = move_outside(model);
    files.model = serialize_onnx(model);
    return files;
}

std::string export_onnx(const Graph& graph, const Weights& weights) {
    OnnxWriting inside;
    inside.max_inside = ~std::uint64_t{0};
    return onnx_files(graph, weights, "", inside).model;
}

void write_onnx(const std::filesystem::path& path, const OnnxFiles& files) {
    if (!files.data.empty()) write_file(path.string() + ".data", files.data);
    write_file(path, files.model);
}

}  // namespace loopegg
