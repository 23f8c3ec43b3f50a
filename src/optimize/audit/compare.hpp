// How an audit compares figures and networks.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>

#include "graph/model_json.hpp"

namespace loopegg {

// Figures that differ by rounding alone: by `part` of the larger one.
inline bool near(double a, double b, double part = 1e-6) { return std::abs(a - b) <= part * std::max({std::abs(a), std::abs(b), 1e-12}); }

// A network as a file says it, wherever its weights are.
inline std::string text_of(Graph graph) {
    graph.weights_file.clear();
    return write_model(graph);
}

}  // namespace loopegg
