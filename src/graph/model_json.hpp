// model.json: the network as a file that people read and write. Reading what was written gives the same graph, and writing that the same bytes.
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

// One node a line; attributes that equal their default are left out.
std::string write_model(const Graph& graph);

// One node as it stands in a model.json, and back (not yet complete: defaults and shapes come with its graph).
std::string write_node(const Node& node);
Node read_node(const SourcePtr& source);

}  // namespace loopegg
