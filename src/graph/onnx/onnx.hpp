// ONNX in and out: what PyTorch's exporters write becomes a graph, and any graph becomes plain ONNX operators.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "graph/load.hpp"

namespace loopegg {

// Throws UserError that names the ONNX node and operator which cannot be read, and why. Weights may stand in other files of the model's folder.
Model read_onnx(const std::filesystem::path& path, const OnnxReading& how = {});
Model import_onnx(const std::string& file, std::string_view bytes, const OnnxReading& how = {});

// Importing the result gives the same graph and weights. A node with a domain is written as the plainest operators that compute it.
std::string export_onnx(const Graph& graph, const Weights& weights);

}  // namespace loopegg
