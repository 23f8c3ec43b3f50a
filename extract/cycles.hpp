// Cycles of an extraction problem: its strongly connected parts, and the short cycles that a fractional choice runs through.
#pragma once
#include <span>
#include <vector>

#include "extract/serialized.hpp"

namespace loopegg {

// Groups of two or more classes that reach each other, through all nodes of the e-graph or through one chosen node for each class.
std::vector<std::vector<ClassIndex>> cyclic_parts(const SerializedEGraph& egraph);
std::vector<std::vector<ClassIndex>> cyclic_parts(const SerializedEGraph& egraph, const std::vector<NodeIndex>& choice);

// Takes a fractional choice: a weight between 0 and 1 for each node. Gives sets of classes around a cycle whose weights no acyclic choice, and no
// mixture of acyclic choices, can have. Gives at most `most` sets, the most violated first.
std::vector<std::vector<ClassIndex>> violated_cycles(const SerializedEGraph& egraph, const std::vector<std::vector<ClassIndex>>& parts,
                                                     std::span<const double> weight, std::size_t most);

}  // namespace loopegg
