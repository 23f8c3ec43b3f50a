// A network as a picture in Graphviz's language: `loopegg show m.json --dot | dot -Tsvg`.
#pragma once
#include <string>

#include "graph/graph.hpp"

namespace loopegg {

std::string to_dot(const Graph& graph);

}  // namespace loopegg
