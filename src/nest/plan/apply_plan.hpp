// Plans applied to networks: the result is an ordinary graph, restricted where ordinary operators cannot say what is left.
#pragma once
#include <string>

#include "graph/graph.hpp"
#include "nest/plan/plan.hpp"

namespace loopegg {

// The network with every step of the plan done, complete and checked. Throws UserError, naming the site and the reason, for a glob that
// meets no site, an unknown rule, and everything that a rule refuses.
// Neural rules of one site: group-axes (?a ?b ?g), bottleneck-axis (?a, ?k or ?w, restore), bottleneck-output (?k or ?w, restore: of the output
// channels), and restrict-nest (?n: a whole NEST) for what no list of these says; ?k is a factor, ?w how many are kept. Of several
// sites: drop-branch and narrow-stream (?w); of the sites that the glob names, the former takes those that end a branch (drop_branch.hpp), the
// latter the streams that they write (streams.hpp), residual ones where there are such. Exact ones that matter to a domain: cut-domain (?a ?k); other exact
// rules leave the network as it is.
Graph apply_plan(const Graph& graph, const Plan& plan);

// The node with a domain, written as an ordinary operator where one says the same: grouped channels become `groups`.
// The graph is left to complete().
void set_domain(Node& node, const Domain& domain);

// Fewer output channels of a conv2d or linear. The first keeps `kept` of each group, and a 1x1 convolution (or linear) NAME.restore brings the
// others back. The second keeps `width` in all: everything that reads them reads fewer, up to the next convolutions or linears. Throw Refusal
// where that cannot be, e.g. at a residual add, a concat, or an output of the network.
void restore_pointwise(Graph& graph, const std::string& site, std::int64_t kept);
void restore_propagate(Graph& graph, const std::string& site, std::int64_t width);

}  // namespace loopegg
