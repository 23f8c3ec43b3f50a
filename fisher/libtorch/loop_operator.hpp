// Operators with loops on LibTorch: every read is a strided view over all loops, and the formulas of the operator's row are applied to these views.
#pragma once
#include <vector>

#include <ATen/ATen.h>

#include "graph/graph.hpp"

namespace loopegg {

at::Tensor run_loop_operator(const Node& node, const std::vector<at::Tensor>& inputs);

}  // namespace loopegg
