// One way in for every command: a model.json, an .onnx file, or "zoo:NAME".
#pragma once
#include <string>

#include "graph/graph.hpp"

namespace loopegg {

Graph load_graph(const std::string& model);

}  // namespace loopegg
