// ONNX in and out: what PyTorch's exporters write becomes a graph, and any graph becomes plain ONNX operators (opset 17).
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "graph/load.hpp"

namespace loopegg {

// Throws UserError that names the ONNX node and operator which cannot be read. A dimension without a number is taken as 1 when it is the first
// of an input (the batch).
Model read_onnx(const std::filesystem::path& path);
Model import_onnx(const std::string& file, std::string_view bytes);

// Importing the result gives the same graph and weights. A node with a domain is written as slices, smaller operators on them, and
// a gathering of their results.
std::string export_onnx(const Graph& graph, const Weights& weights);

}  // namespace loopegg
