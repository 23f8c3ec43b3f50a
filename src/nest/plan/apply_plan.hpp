// Plans applied to networks: the result is an ordinary graph, restricted where ordinary operators cannot say what is left.
#pragma once
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "nest/plan/plan.hpp"

namespace loopegg {

// Rules of single sites by their names, from whoever knows rule files (rewrite/plan_rules.hpp).
class NamedRules {
public:
    virtual ~NamedRules() = default;
    virtual std::vector<std::string> names() const = 0;
    // The NEST that a rule of these names makes of a NEST. Throws Refusal.
    virtual Term apply(const Application& a, const Term& nest) const = 0;
};

// The network with every step of the plan done, complete and checked. Throws UserError, naming the site and the reason, for a glob that
// meets no site, an unknown rule, and everything that a rule refuses.
// Neural rules of one site are group-axes (?a ?b ?g), bottleneck-axis (?a, ?k or ?w, restore), bottleneck-output (?k or ?w, restore: of the output
// channels), and restrict-nest (?n: a whole NEST) for what no list of these says. ?k is a factor, and ?w is how many are kept.
// Neural rules of several sites are drop-branch and narrow-stream (?w). Of the sites that the glob names, drop-branch takes those that end a branch
// (drop_branch.hpp), and narrow-stream takes the streams that they write (streams.hpp), residual ones where there are such.
// The exact rule that matters to a domain is cut-domain (?a ?k). narrow-branch is narrow-stream by another name, and
// narrow-width a bottleneck-output that its readers do without. Every other name is one of `rules`.
Graph apply_plan(const Graph& graph, const Plan& plan, const NamedRules* rules = nullptr);

// The node with a domain, written as an ordinary operator where one says the same: grouped channels become `groups`.
// The graph is left to complete().
void set_domain(Node& node, const Domain& domain);

// Both leave a conv2d or linear fewer output channels. The first keeps `kept` of each group, and a 1x1 convolution (or linear) NAME.restore brings
// the others back. The second keeps `width` in all, and everything that reads them reads fewer, up to the next convolutions or linears. Both throw
// Refusal where that cannot be, for example at a residual add, a concat, or an output of the network.
void restore_pointwise(Graph& graph, const std::string& site, std::int64_t kept);
void restore_propagate(Graph& graph, const std::string& site, std::int64_t width);

}  // namespace loopegg
