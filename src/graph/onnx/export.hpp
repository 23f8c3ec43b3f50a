// A graph as an ONNX model, before it is written.
#pragma once
#include "graph/graph.hpp"
#include "graph/onnx/onnx_model.hpp"

namespace loopegg {

// Without weights: the nodes and the constants that they need, for comparing; parameters are empty tensors.
OnnxModel onnx_model(const Graph& graph, const Weights* weights);

}  // namespace loopegg
