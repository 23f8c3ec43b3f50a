// The small numbers by which everything in an e-graph is known.
#pragma once
#include <cstdint>
#include <span>

#include "base/symbol.hpp"

namespace loopegg {

using ClassId = std::uint32_t;  // an e-class; may have been merged into another since: EGraph::find shows into which
using NodeId = std::uint32_t;   // an e-node, numbered in order of creation
using OpId = std::uint32_t;     // an operator with its arity, numbered within one e-graph
using EdgeId = std::uint32_t;   // a variant edge
inline constexpr std::uint32_t none = 0xffffffffu;

// An e-node as it is read: an operator over classes, in a class.
struct NodeView {
    Symbol op;
    std::span<const ClassId> children;
    ClassId in;
};

}  // namespace loopegg
