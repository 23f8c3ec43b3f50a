// The layers of a network that a plan changes, each as a network of its own.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace loopegg {

// Sites with equal nests before and after.
struct ChangedLayer {
    std::vector<std::string> sites;
    Graph before;
    std::optional<Graph> after;  // none where the plan drops the layer
};

// The site alone, with the convolution that restores its channels where it has one. What the site reads are inputs.
Graph layer_of(const Graph& graph, const std::string& site);

std::vector<ChangedLayer> changed_layers(const Graph& before, const Graph& after);

}  // namespace loopegg
