// Whole networks as terms that name no value: what a part reads is what comes in, and what it writes goes on.
//
//   NET ::= (layer NEST)                  a site
//         | (each WORD)                   an operator that works on each channel by itself (a batch norm, a rectifier, a pool)
//         | same                          what comes in
//         | (row NET NET)                 the second reads what the first writes
//         | (join add NET NET)            both read what comes in; the sum. The second is the branch: the one with more work
//         | (join concat NET NET)         both read what comes in; the channels of the first, then those of the second
//         | (stream NET)                  a row of joins that all read and write the channels of one residual stream
//         | (tangle NET NET)              parts that work together in another way (an attention); their order says nothing
//         | (none NET)                    zeros instead of what NET would write; nothing of it is computed
//         | (write W NET)                 NET, of whose channels only W are computed (as many of each group); the others are zero
//         | (read W NET)                  NET that reads W of the channels that come in; to it the others are zero
//         | (within W NET)                both, for every part of a row of joins
//
// The term of a residual network grows linearly with its blocks, though every block is read twice. Rules over these terms (rules/neural.rules) drop a
// branch or narrow a stream: they take sites away, or leave out instances of several sites at once.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/term.hpp"
#include "graph/graph.hpp"

namespace loopegg {

bool is_net(const Term& term);  // by its operator

// The network from its input to its output, and where each of its sites stands in the term: child numbers from the root to its (layer NEST). Where
// several values come in or go out, parts that cannot be told apart are a tangle. The loops over output and input channels stand first in a nest.
struct Net {
    Term term;
    std::map<std::string, std::vector<std::uint32_t>> place;
};
Net net_of(const Graph& graph);

// What is left of a site, in the order of the term.
struct NetLayer {
    Term nest;
    std::int64_t inputs = 0, outputs = 0;  // channels that are read and computed, of all groups
    // The statement of the site with these sizes.
    Term statement() const;
    friend bool operator==(const NetLayer&, const NetLayer&) = default;
};
std::vector<NetLayer> layers_of(const Term& net);

bool has_sites(const Term& net);  // that compute something

// Whether some of what comes in goes on as it is, or channel by channel.
bool passes_through(const Term& net);

// Channels that it writes; none where that depends on what comes in.
std::optional<std::int64_t> channels_written(const Term& net);

// How many of some channels rules offer to keep, the fewest first: one to seven eighths. Of sixteen channels and more, whole fours are offered: vectors
// have at least four lanes, and kernels of other runtimes that walk over blocks of channels fall back to slow ones at other widths.
std::vector<std::int64_t> widths_offered(std::int64_t channels);

// Runs it with plain loops on one image. `weights` by nest; every `each` is a rectifier. For small networks that rules are tried on.
struct NetValue {
    std::int64_t channels = 0;
    std::vector<float> values;  // row-major, channels first
};
NetValue interpret_net(const Term& net, const NetValue& input, const std::function<std::vector<float>(const Term& nest)>& weights);

}  // namespace loopegg
