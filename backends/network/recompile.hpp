// A network that was compiled before, with other weights: the same steps and, byte for byte, the same kernels.
#pragma once
#include <filesystem>

#include "backends/network/network.hpp"

namespace loopegg {

// Compiles into `to`, which has no network in it yet, what was compiled into `from`. `graph` is the network of `from`. Throws UserError where `from` does not
// hold all that is needed.
CompiledNetwork recompile(const std::filesystem::path& from, const Graph& graph, const Weights& weights, const std::filesystem::path& to,
                          Progress* progress = nullptr);

}  // namespace loopegg
