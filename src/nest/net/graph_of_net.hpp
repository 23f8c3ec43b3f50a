// The graph of a network term.
#pragma once
#include "base/term.hpp"
#include "graph/graph.hpp"

namespace loopegg {

// The graph whose nodes are the nodes of `original` that the term names, as wide as the term says, with what is left of each nest as its domain. Throws
// UserError with the reason where no graph computes what the term says, for example where channels of different numbers are added.
Graph graph_of(const Term& net, const Graph& original);

}  // namespace loopegg
