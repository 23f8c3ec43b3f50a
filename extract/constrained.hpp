// Extraction under side constraints: the cheapest choice of nodes of which some sums stay within bounds, exactly.
#pragma once
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "extract/extraction.hpp"

namespace loopegg {

// The sum of these weights over the nodes that are chosen is between the bounds.
struct SideConstraint {
    std::vector<std::pair<NodeIndex, double>> nodes;
    double lower = -std::numeric_limits<double>::infinity(), upper = std::numeric_limits<double>::infinity();
};

struct ConstrainedOptions {
    double seconds = 60;
    double gap = 0;  // by what share of the best cost the cost may be above it
};

// Solves an integer program: one variable for each node of a class that has several nodes, and one for each class that some choice does not need. Gives none
// where no choice meets all constraints, or none was found in time. The e-graph must have no cycles.
std::optional<Extraction> constrained_extract(const SerializedEGraph& egraph, std::span<const SideConstraint> constraints,
                                              const ConstrainedOptions& options = {});

}  // namespace loopegg
