// Outputs that nobody reads. A site whose only reader is restricted to some channels need not compute the other channels, and the network still
// computes the same.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "graph/operators.hpp"
#include "graph/streams.hpp"

namespace loopegg {

// Whether an operator works on each channel of its input by itself, and leaves each channel where it was.
bool keeps_channels_apart(const std::string& op);

// Two sites with nothing between them but operators that keep channels apart and that nobody else reads: the writer's output channels are the
// reader's input channels, one for one.
struct HiddenWidth {
    std::string writer, reader;
};
std::vector<HiddenWidth> hidden_widths(const Graph& graph);

// A domain that leaves out whole output channels, and nothing of those that it keeps.
bool leaves_out_channels(const Domain& domain);

// Whether the writer computes every channel that the reader reads. Each domain is over the axes that follow it.
bool reads_only_computed(const Domain& writer, const std::vector<Axis>& writer_axes, const Domain& reader, const std::vector<Axis>& reader_axes);

// The same function of the network's inputs, without the output channels that nobody reads. A writer that is restricted in other ways stays as it is, and
// so does a writer whose read channels are no ranges of digits. Networks that differ only in what they compute in vain become one.
Graph without_unread_outputs(Graph graph);

// Fewer channels of a stream: every writer leaves the same ones out, and no reader reads them.

// The network in which the named streams have these widths. A stream of width 0 is left out: concatenations continue without it, and nothing else may
// need it. Throws UserError with the reason where a channel must stay, or where groups cannot keep equally many channels.
Graph with_widths(Graph graph, const Streams& streams, const std::map<std::size_t, std::int64_t>& widths);

// Why a stream cannot have this width; empty where it can.
std::string width_refusal(const Stream& stream, std::int64_t width);

// The network with only the nodes that some output needs.
Graph without_unread_nodes(Graph graph);

}  // namespace loopegg
