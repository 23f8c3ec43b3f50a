// Whole networks as terms that name no value: a part reads the values that come in, and the values that it writes go on to the next part.
//
//   NET ::= (layer NEST)                  a site
//         | (each WORD)                   an operator that works on each channel by itself (a batch norm, a rectifier, a pool)
//         | same                          what comes in
//         | (row NET NET)                 the second reads what the first writes
//         | (join add NET NET)            both read what comes in; the sum. The second is the branch: the one with more work
//         | (join concat NET NET)         both read what comes in; the channels of the first, then those of the second
//         | (stream NET)                  a row of joins that all read and write the channels of one residual stream
//         | (tangle NET NET)              parts that work together in another way (an attention); their order says nothing
//         | (none NET)                    zeros instead of what NET would write; nothing of NET is computed
//         | (write W NET)                 NET, of whose channels only W are computed (as many of each group); the others are zero
//         | (read W NET)                  NET that reads W of the channels that come in, and sees zeros for the others
//         | (within W NET)                both (write W) and (read W), for every part of a row of joins
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

// The network from its input to its output, and where each of its sites stands in the term: child numbers from the root to the site's (layer NEST).
// Where several values come in or go out, parts that cannot be told apart are a tangle. The loops over output and input channels stand first in a nest.
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

bool has_sites(const Term& net);  // whether some site computes something

// Whether some of what comes in goes on as it is, or channel by channel.
bool passes_through(const Term& net);

// The number of channels that a NET writes; none where that depends on what comes in.
std::optional<std::int64_t> channels_written(const Term& net);

// The widths that rules offer in place of so many channels, the fewest first: one to seven eighths of them. From sixteen channels on, only multiples of
// four are offered: vectors have at least four lanes, and at other widths other runtimes fall back from kernels over blocks of channels to slow kernels.
std::vector<std::int64_t> widths_offered(std::int64_t channels);

// Runs a NET with plain loops on one image. `weights` gives the weights of a nest; every `each` is a rectifier. For small networks that rules are tried on.
struct NetValue {
    std::int64_t channels = 0;
    std::vector<float> values;  // row-major, channels first
};
NetValue interpret_net(const Term& net, const NetValue& input, const std::function<std::vector<float>(const Term& nest)>& weights);

}  // namespace loopegg
