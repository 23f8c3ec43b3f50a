// A restricted site as plain ONNX: one smaller operator on slices for each box of the domain, and one gather over all their results.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.hpp"
#include "graph/onnx/onnx_model.hpp"

namespace loopegg {

struct DomainExpansion {
    std::vector<std::pair<std::string, OnnxTensor>> constants;  // besides the node's own parameters, which are initializers by their names
    std::vector<OnnxNode> nodes;                                // the last one has the node's name
    std::string description;                                    // JSON by which the importer recognises the node
};

// The expansion depends on the node alone, so an importer can make it again and compare.
DomainExpansion expand_domain(const Node& node);

// The node of a description (without shapes). Throws UserError.
Node described_node(const std::string& name, const std::string& description);

}  // namespace loopegg
