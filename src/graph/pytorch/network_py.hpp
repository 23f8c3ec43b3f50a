// The chosen network as one plain PyTorch file, for retraining without loopegg.
#pragma once
#include <map>
#include <string>

#include "graph/graph.hpp"

namespace loopegg {

// A module whose state_dict has the names of weights.safetensors, which it reads by itself from its own folder; the file needs PyTorch
// alone. Restricted nodes become masked layers: what a rule cut away stays away in training too. `about` becomes its table ABOUT.
std::string network_py(const Graph& graph, const std::map<std::string, std::string>& about = {});

}  // namespace loopegg
