// model.json: the network as a file that people read and write. Reading a written file gives the same graph, and writing that graph gives the same bytes.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/source.hpp"
#include "graph/graph.hpp"

namespace loopegg {

// Opsets of ONNX that a network may say it came from.
constexpr std::int64_t oldest_opset = 7, newest_opset = 1000;

// A complete graph (see complete). Throws UserError that points into the file.
Graph read_model(const SourcePtr& source);
Graph read_model(const std::filesystem::path& path);

// One node on each line; attributes that equal their default are left out.
std::string write_model(const Graph& graph);

// One node as it is in a model.json. The node that read_node gives is not complete yet: complete() gives it defaults and shapes as part of a graph.
std::string write_node(const Node& node);
Node read_node(const SourcePtr& source);

}  // namespace loopegg
