// The interpreter of operators with loops: instance by instance, as the row says.
#pragma once
#include <vector>

#include "graph/graph.hpp"

namespace loopegg {

Tensor interpret_loops(const Node& node, const std::vector<const Tensor*>& inputs);

}  // namespace loopegg
