// A network as files that people train with code of their own.
#pragma once
#include <filesystem>

#include "graph/graph.hpp"
#include "graph/weights.hpp"
#include "nest/plan/plan.hpp"

namespace loopegg {

// Writes plan.json, model.json, network.py (a PyTorch module), and weights.safetensors unless `weights` is null.
void write_trainable(const std::filesystem::path& folder, Graph graph, const Weights* weights, const Plan& plan);

}  // namespace loopegg
