// The chosen network as one plain PyTorch file, for retraining without loopegg.
#pragma once
#include <map>
#include <string>

#include "graph/graph.hpp"

namespace loopegg {

// A module whose state_dict has the names of weights.safetensors. The Python file reads the weights from its own folder by itself, and needs PyTorch alone.
// Restricted nodes become masked layers, so what a rule left out stays out in training too. `about` becomes the file's table ABOUT.
std::string network_py(const Graph& graph, const std::map<std::string, std::string>& about = {});

}  // namespace loopegg
