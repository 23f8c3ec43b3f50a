// ONNX in and out: what PyTorch's exporters write becomes a graph, and any graph becomes plain ONNX operators.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/load.hpp"

namespace loopegg {

// Throws UserError that names the ONNX node and operator which cannot be read, and why. Weights may be in other files of the model's folder.
// Protobuf parses in a process of its own. With `confined` false it parses in this process, for fuzzers.
Model read_onnx(const std::filesystem::path& path, const OnnxReading& how = {});
Model import_onnx(const std::string& file, std::string_view bytes, const OnnxReading& how = {}, bool confined = true);

struct OnnxWriting {
    std::map<std::string, std::string> about{};         // goes into metadata_props, which viewers show
    std::map<std::string, std::string> rounded{};       // sites that multiply rounded numbers, and which: "bf16" as casts, "int8" as QDQ, by their scales
    std::uint64_t max_inside = std::uint64_t{1} << 30;  // bytes of weights; more than that are in FILE.data next to the file
};
struct OnnxFiles {
    std::string model, data{};         // data: for FILE.data; empty where the weights are inside
    std::vector<std::string> notes{};  // what could not be kept, in words for the user
};

// Importing the result gives the same graph and weights. A node with a domain is written as the plainest operators that compute it. A batch that the
// network's file left open is open again, where every node works for any batch.
OnnxFiles onnx_files(const Graph& graph, const Weights& weights, const std::string& file_name, const OnnxWriting& how = {});

// The whole model in one file, whatever its size.
std::string export_onnx(const Graph& graph, const Weights& weights);

// Writes PATH. Where there is data, writes PATH.data before PATH.
void write_onnx(const std::filesystem::path& path, const OnnxFiles& files);

}  // namespace loopegg
