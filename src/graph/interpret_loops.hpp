// The interpreter of operators with loops: it runs instance by instance, as the operator's row in loop_operators.cpp says.
#pragma once
#include <vector>

#include "graph/graph.hpp"

namespace loopegg {

Tensor interpret_loops(const Node& node, const std::vector<const Tensor*>& inputs);

}  // namespace loopegg
