// Opaque nodes: standard ONNX operators that are run as they stand, by the evaluator of graph/onnx/evaluate.
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "graph/graph.hpp"
#include "graph/onnx/evaluate/opaque_text.hpp"

namespace loopegg {

// The operator table's inference: by evaluating on zeros, once for each node and shapes.
Shape infer_opaque(const Node& node);
int opaque_type(const Node& node);                     // of the result, by ONNX's numbers
OpaqueNode opaque_of(const Node& node);                // what its attribute says

// How often each ONNX operator is run as it stands.
std::map<std::string, int> opaque_operators(const Graph& graph);

// Throws UserError where an operand makes no sense.
Tensor run_opaque(const Node& node, const std::vector<const Tensor*>& inputs);

// The library that compiled networks with opaque nodes are linked with.
std::filesystem::path opaque_library();

}  // namespace loopegg
