// One inference of a compiled network, in a process that may do nothing else.
#pragma once
#include <filesystem>
#include <span>
#include <vector>

#include "graph/graph.hpp"

namespace loopegg {

// Inputs and outputs are in the order of network.json. Throws UserError with what became of the process when the folder holds no network, or the network
// crashes.
std::vector<Tensor> run_confined(const std::filesystem::path& folder, std::span<const Tensor> inputs);

}  // namespace loopegg
