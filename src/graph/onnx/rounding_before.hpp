// Which rounding a value has: the one that made it, with operators between that only move or select its elements.
#pragma once
#include "graph/graph.hpp"

namespace loopegg {

// The fake_quantize node that made the elements of a value; null where they are not known to be rounded.
inline const Node* rounding_before(const Graph& graph, const std::string& value) {
    const Node* node = graph.find(value);
    const auto moves = [](const std::string& op) {
        return op == "reshape" || op == "flatten" || op == "transpose" || op == "slice" || op == "identity" || op == "max_pool";
    };
    while (node && moves(node->op)) node = graph.find(node->inputs[0]);
    return node && node->op == "fake_quantize" ? node : nullptr;
}

}  // namespace loopegg
