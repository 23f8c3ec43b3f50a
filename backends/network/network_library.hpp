// network.so of a network on CPUs: the runtime, the kernels and the tables, linked without a compiler.
#pragma once
#include <string>

#include "backends/network/network_source.hpp"

namespace loopegg {

// The runtime is an object for the network's processor. Throws UserError where the objects need what only a system's linker does. The network has no operators
// that run as they stand: their code is C++.
std::string network_library(const PlacedNetwork& network, const std::string& runtime);

}  // namespace loopegg
