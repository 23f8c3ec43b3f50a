// Opaque nodes: standard ONNX operators that are run as they are, by the evaluator of graph/onnx/evaluate.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "graph/onnx/evaluate/opaque_text.hpp"

namespace loopegg {

// Infers the shape for the operator table: evaluates the node on zeros, once for each node and its input shapes.
Shape infer_opaque(const Node& node);
int opaque_type(const Node& node);       // of the result, by ONNX's numbers
OpaqueNode opaque_of(const Node& node);  // as the node's attribute describes it

// How many opaque nodes each ONNX operator has.
std::map<std::string, int> opaque_operators(const Graph& graph);

// Throws UserError where an operand makes no sense.
Tensor run_opaque(const Node& node, const std::vector<const Tensor*>& inputs);

// For an operator that only moves the values of its one input: for each value of the result, the place of that value in the input. Null for every other
// operator.
std::shared_ptr<const std::vector<std::int64_t>> places_moved(const Node& node);

// The library that compiled networks with opaque nodes are linked with.
std::filesystem::path opaque_library();

}  // namespace loopegg
