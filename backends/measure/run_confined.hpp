// One inference of a compiled network, in a process that may do nothing but that.
#pragma once
#include <filesystem>
#include <span>
#include <vector>

#include "graph/graph.hpp"

namespace loopegg {

// Inputs and outputs in the order of network.json. Throws UserError with what became of the process when it is no network, or crashes.
std::vector<Tensor> run_confined(const std::filesystem::path& folder, std::span<const Tensor> inputs);

}  // namespace loopegg
