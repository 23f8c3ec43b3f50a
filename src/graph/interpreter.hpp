// The reference interpreter runs any graph with plain loops and sums in double. It is slow and obvious, because it judges everything else.
#pragma once
#include <map>
#include <string>

#include "graph/graph.hpp"

namespace loopegg {

using Tensors = std::map<std::string, Tensor>;

// The graph's outputs by name. Throws UserError when an input is missing or has another shape.
Tensors interpret(const Graph& graph, const Weights& weights, const Tensors& inputs);

// Every value: inputs, all nodes, outputs.
Tensors interpret_all(const Graph& graph, const Weights& weights, const Tensors& inputs);

// One node on given inputs.
Tensor interpret_node(const Node& node, const Weights& weights, const std::vector<const Tensor*>& inputs);

}  // namespace loopegg
