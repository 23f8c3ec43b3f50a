// Whole networks as terms that name no value: a part reads the values that come in, and the values that it writes continue to the next part.
//
//   NET  ::= (layer SITE NEST)              a site, by its name: equal blocks of a network stay apart, and their nests are shared
//          | (each OP NAME)                 an operator that works on each channel by itself (a batch norm, a rectifier, a pool)
//          | (spread P NAME)                a flattening: each channel becomes P values side by side
//          | (opaque NAME)                  an operator that needs all channels that come in
//          | same                           what comes in
//          | (row NET NET)                  the second reads what the first writes
//          | (join (add NAME) NET NET)      both read what comes in; the sum. The second is the branch: the one with more work
//          | (join (concat NAME) NET NET)   both read what comes in; the channels of the first, then those of the second
//          | (stream NET NET)               the first writes the channels of a residual stream, and the second is a row of joins that read and write them
//          | (tangle (between A B) NET NET) parts that work together in another way (an attention), from value A to value B; their order says nothing
//          | (none NET)                     nothing of NET is computed, and none of its channels is written
//          | (write W NET)                  NET, of whose channels only W are written
//          | (read W NET)                   NET, which reads only W of the channels that come in
//          | (lack M NET)                   NET, where M of the channels that it reads do not come in
//          | (within W NET)                 both (write W) and (read W), for every part of a row
//   SITE ::= NAME | (kept NAME)             a kept site stays as it is
//   NAME ::= @layer1.0.conv1
//
// A term counts channels and does not say which ones they are: every writer and every reader of a stream agrees, and as many of each group are kept
// (graph/carry_weights.hpp chooses them). A channel that is not written is absent, and a sum or a reader takes it for zero. Exact rules (rules/networks.rules)
// move `write`, `read`, `lack` and `within` into the layers, so that the work of a layer is determined by its nest alone. The term of a residual network grows
// linearly with its blocks, though every block is read twice.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/term.hpp"
#include "graph/graph.hpp"

namespace loopegg {

bool is_net(const Term& term);  // by its operator
std::span<const std::string_view> net_operators();
std::size_t net_parts(std::string_view op);  // how many networks the operator is made of

// The name of a node as a leaf, and the way back. Characters that mean something in terms are written as %XX.
Term net_name(std::string_view node);
std::string node_named(const Term& name);

// The site of a (layer SITE NEST).
struct NetSite {
    std::string name;
    bool kept = false;
};
NetSite net_site(const Term& site);
Term net_site(const NetSite& site);

// The network from its input to its output. Sites that `kept` names are written as kept. Where the way of values cannot
// be determined by joins, the term has a tangle.
Term net_of(const Graph& graph, const std::vector<std::string>& kept = {});

// What is left of a site.
struct NetLayer {
    std::string site;
    Term nest;
    friend bool operator==(const NetLayer&, const NetLayer&) = default;
};

// The sites of a network that compute something, in the order of the term, with the sizes that `write`, `read`, `lack` and `within` around them leave.
// Throws UserError where these leave no whole nest.
std::vector<NetLayer> layers_of(const Term& net);

// The widths that rules offer in place of so many channels, the fewest first: least/parts to (parts - 1)/parts of them, in multiples of `step`. From sixteen
// channels on, only multiples of four are offered: vectors have at least four lanes, and at other widths other runtimes fall back from kernels over blocks of
// channels to slow kernels.
std::vector<std::int64_t> widths_offered(std::int64_t channels, std::int64_t least, std::int64_t parts, std::int64_t step = 1);

// The graph of a network term.

// The graph whose nodes are the nodes of `original` that the term names, as wide as the term says, with what is left of each nest as its domain. Throws
// UserError with the reason where no graph computes what the term says, for example where channels of different numbers are added.
Graph graph_of(const Term& net, const Graph& original);

}  // namespace loopegg
