// The interpreter's loop nests: conv2d, linear and matmul, over the whole nest or over the instances of a domain.
#pragma once
#include <vector>

#include "graph/graph.hpp"

namespace loopegg {

Tensor interpret_conv2d(const Node& node, const Weights& weights, const std::vector<const Tensor*>& inputs);
Tensor interpret_linear(const Node& node, const Weights& weights, const std::vector<const Tensor*>& inputs);
Tensor interpret_matmul(const Node& node, const Weights& weights, const std::vector<const Tensor*>& inputs);

}  // namespace loopegg
