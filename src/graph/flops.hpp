// What a network costs on paper: parameters, multiply-accumulates and memory, of the whole or of one node, honouring domains.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace loopegg {

std::int64_t parameters(const Node& node);  // trained values that some instance uses
std::int64_t parameters(const Graph& graph);
std::int64_t macs(const Node& node);  // instances of conv2d, linear and matmul; other operators count nothing
std::int64_t macs(const Graph& graph);

// The bytes of the float32 values that must be kept at once while the nodes run in order: each output is kept until its last reader is done.
std::int64_t peak_activation_bytes(const Graph& graph);

// Which values of the node's ".weight" (conv2d, linear: row-major as stored) and ".bias" some instance uses.
std::vector<char> weight_mask(const Node& node);
std::vector<char> bias_mask(const Node& node);

}  // namespace loopegg
