// Applying the matches of a rule: building right sides, merging them in (exact rules) or leading edges to them (neural rules).
#pragma once
#include "egraph/search.hpp"

namespace loopegg {

struct Applied {
    std::size_t effective = 0;  // applications that changed the e-graph
    bool complete = true;       // false: a limit was met
};

// `matches` are as search() gives them. No node is added beyond `node_limit`. Call EGraph::rebuild() afterwards.
Applied apply(EGraph& graph, const std::shared_ptr<const CompiledRewrite>& rule, std::span<const NodeId> matches, std::size_t node_limit, const Budget& budget);

}  // namespace loopegg
