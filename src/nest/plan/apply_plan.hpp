// Plans applied to networks: the result is an ordinary graph, with restricted nodes where no ordinary operator expresses what is left.
#pragma once
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "nest/plan/plan.hpp"

namespace loopegg {

// Rules by their names. The code that reads rule files implements this (rewrite/plan_rules.hpp).
class NamedRules {
public:
    virtual ~NamedRules() = default;
    virtual std::vector<std::string> names() const = 0;
    virtual std::string source() const = 0;  // the file that people look for a rule in
    // The variables that an application of this rule may give values to: axes, and what the rule chooses from lists; backwards also what only its left side
    // has. Empty for a rule that is not here.
    virtual std::vector<std::string> arguments(const std::string& rule, bool backwards) const = 0;
    // The NEST that a rule of these names makes of a NEST. Throws Refusal.
    virtual Term apply(const Application& a, const Term& nest) const = 0;
    // Whether a rule is one over whole networks.
    virtual bool over_networks(const std::string& rule) const = 0;
    // The network that a rule over networks makes of a network where it takes something from the site: it leaves the site out, or some of its output channels.
    // Of several places where the rule does that, the one with the fewest such sites counts. None where the rule takes nothing from the site. Throws Refusal
    // where it would, and a guard or the network refuses.
    virtual std::optional<Graph> apply(const Application& a, const Graph& graph, const std::string& site) const = 0;
};

// The network with every step of the plan done, complete and checked. Throws UserError, naming the site and the reason, for a glob that
// matches no site, an unknown rule, and everything that a rule refuses.
// A step names a rule, and `rules` apply it to the nest of each site. Words of plans in addition to the names of rules:
// - bottleneck-axis of an output axis, with a restore, is bottleneck-output. Without ?a, bottleneck-output is of the output channels (co), and its ?w counts
//   the channels of all groups.
// - restrict-nest (?n: a whole NEST) is for restrictions that no list of rules makes.
// - A rule over networks (drop-branch, narrow-stream, ...) is applied where it takes something from a site of the glob. narrow-width is also written as a
//   bottleneck with restore propagate.
Graph apply_plan(const Graph& graph, const Plan& plan, const NamedRules& rules);

// Gives the node a domain, or makes it an ordinary operator of the same meaning where there is one: grouped channels become `groups`.
// The caller calls complete() on the graph.
void set_domain(Node& node, const Domain& domain);

// Both leave a conv2d or linear fewer output channels. The first keeps `kept` of each group, and a 1x1 convolution (or linear) NAME.restore brings
// the others back. The second keeps `width` channels in all, and all nodes that read them, up to the next convolutions or linears, read fewer. Both throw
// Refusal where that is impossible, for example at a residual add, a concat, or an output of the network.
void restore_pointwise(Graph& graph, const std::string& site, std::int64_t kept);
void restore_propagate(Graph& graph, const std::string& site, std::int64_t width);

}  // namespace loopegg
