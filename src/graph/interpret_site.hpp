// The interpreter's loop nests: conv2d, linear and matmul, over the whole nest or over the instances of a domain.
#pragma once
#include <vector>

#include "graph/graph.hpp"

namespace loopegg {

Tensor interpret_conv2d(const Node& node, const Weights& weights, const std::vector<const Tensor*>& inputs);
Tensor interpret_linear(const Node& node, const Weights& weights, const std::vector<const Tensor*>& inputs);
Tensor interpret_matmul(const Node& node, const Weights& weights, const std::vector<const Tensor*>& inputs);

// The interpreter of operators with loops: it runs instance by instance, as the operator's row in loop_operators.cpp says.
Tensor interpret_loops(const Node& node, const std::vector<const Tensor*>& inputs);

}  // namespace loopegg
