// A network's weights: drawn from a seed, or read from a file and compared with what the graph needs.
#pragma once
#include <cstdint>
#include <string>

#include "graph/graph.hpp"

namespace loopegg {

// He's initialisation: normal with variance 2 / fan-in, where fan-in is how many values one output really sums (groups and domains make it
// smaller). Biases are 0, batch and layer norms 1 and 0, statistics 0 and 1, and free parameters 0.02. A value depends on the seed, the tensor's
// name and its place alone, and is the same bit for bit on every machine.
Weights initial_weights(const Graph& graph, std::uint64_t seed = 0);

// Throws UserError that names `file` and every tensor that is missing or has another shape.
void check_weights(const Graph& graph, const Weights& weights, const std::string& file);

// A tensor of standard normal values from the same generator. Inputs are drawn so.
Tensor normal_tensor(const Shape& shape, std::uint64_t seed, const std::string& name);

}  // namespace loopegg
