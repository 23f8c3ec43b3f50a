// One pass of a network that yields its capacity measures.
#pragma once
#include <string>
#include <vector>

#include "fisher/libtorch/executor.hpp"

namespace loopegg {

// The compute sites whose activations are scored: the convolutions, or all sites of a network that has none.
std::vector<std::string> scored_layers(const Graph& graph);

// layers: names in the graph, in order; a layer that the graph lacks is left out of the result.
RawScores score_pass(const Executor& executor, const TensorMap& parameters, const at::Tensor& images, const at::Tensor& labels, const std::vector<std::string>& layers, const Wanted& wanted);

}  // namespace loopegg
