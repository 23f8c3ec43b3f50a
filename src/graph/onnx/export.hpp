// A graph as an ONNX model, before it is written.
#pragma once
#include "graph/graph.hpp"
#include "graph/onnx/onnx_model.hpp"

namespace loopegg {

// With null weights the model has the nodes and the constants that they need, and its parameters are empty tensors. Such a model is for comparing.
// `rounded`: sites whose operands are rounded, and to which numbers (OnnxWriting::rounded).
OnnxModel onnx_model(const Graph& graph, const Weights* weights, const std::map<std::string, std::string>& rounded = {});

}  // namespace loopegg
