// A network with some sites restricted, under every kind of restore.
#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.hpp"

namespace loopegg {

// A domain that an ordinary operator can express becomes that operator. Under restore pointwise the site computes fewer channels and a 1x1
// convolution after the site makes the others (restore_pointwise). Throws UserError with the reason where that is impossible.
Graph with_domain(const Graph& graph, const std::string& site, const Domain& domain);
// The same for several sites, by name.
Graph with_domains(const Graph& graph, std::span<const std::pair<std::string, Domain>> domains);

// The node that makes the channels of a site which was restored pointwise.
const Node& restoring_node(const Graph& restricted, const std::string& site);

// What restore pointwise says of a node: of its `channels` output channels (of each group) the node computes the first `kept`, and `rest`
// restricts the computation of these channels. Throws Refusal for a domain of another form.
struct NarrowedDomain {
    std::int64_t channels, kept;
    Domain rest;
};
NarrowedDomain narrowed(const Domain& domain, const std::vector<Axis>& axes);

}  // namespace loopegg
