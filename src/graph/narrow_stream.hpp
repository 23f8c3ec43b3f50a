// Fewer channels of a stream: every writer leaves the same ones out, and no reader reads them.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "graph/graph.hpp"
#include "graph/streams.hpp"

namespace loopegg {

// The network in which the named streams have these widths. A stream of width 0 is left out: concatenations go on without it, and nothing else may
// need it. Throws UserError with the reason where a channel must stay, or where groups cannot keep equally many channels.
Graph with_widths(Graph graph, const Streams& streams, const std::map<std::size_t, std::int64_t>& widths);

// Why a stream cannot have this width; empty where it can.
std::string width_refusal(const Stream& stream, std::int64_t width);

// The network with only the nodes that some output needs.
Graph without_unread_nodes(Graph graph);

}  // namespace loopegg
