// Plans applied to networks: the result is an ordinary graph, restricted where ordinary operators cannot say what is left.
#pragma once
#include <string>

#include "graph/graph.hpp"
#include "nest/plan/plan.hpp"

namespace loopegg {

// The network with every step of the plan done, complete and checked. Throws UserError, naming the site and the reason, for a glob that
// meets no site, an unknown rule, and everything that a rule refuses.
// Neural rules: group-axes (?a ?b ?g), bottleneck-axis (?a ?k, restore), and restrict-nest (?n: a whole NEST) for what no
// list of these says. Exact ones that matter to a domain: cut-domain (?a ?k); other exact
// rules leave the network as it is.
Graph apply_plan(const Graph& graph, const Plan& plan);

// The node with a domain, written as an ordinary operator where one says the same: grouped channels become `groups`.
// The graph is left to complete().
void set_domain(Node& node, const Domain& domain);

// Keeps 1/factor of the output channels of a conv2d or linear. The first: a 1x1 convolution (or linear) NAME.restore brings them back.
// The second: everything that reads them reads fewer, up to the next convolutions or linears. Throw Refusal where that cannot be,
// e.g. at a residual add, a concat, or an output of the network.
void restore_pointwise(Graph& graph, const std::string& site, std::int64_t factor);
void restore_propagate(Graph& graph, const std::string& site, std::int64_t factor);

}  // namespace loopegg
