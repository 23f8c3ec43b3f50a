// Channels that belong together: who writes them, who reads them, and what must be left out with them.
//
// The channels of a residual stream belong together: every block adds to them, so they are the outputs of many sites and the inputs of many others.
// The width between two convolutions is a stream as well, with one writer.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.hpp"

namespace loopegg {

struct Stream {
    std::int64_t width = 0;
    std::vector<std::string> writers;  // nodes whose own output channels these are (conv2d, linear, parameter), and inputs of the network
    std::vector<std::string> readers;  // sites that read them
    std::int64_t blocks = 1;           // grouped convolutions divide the channels into so many blocks, and each block must keep equally many channels
    bool joined = false;               // an addition or a concatenation puts the stream together with another value
    std::string fixed;                 // why every channel must stay; empty where some channels may go
};

// The channels of a value: one dimension of it, made of streams that follow one another (several after a concatenation).
struct ChannelAxis {
    std::size_t axis = 0;
    std::vector<std::size_t> streams;
    std::int64_t places = 1;  // how many values of each channel are adjacent in this dimension (after flatten)
};

struct Streams {
    std::vector<Stream> all;
    std::map<std::string, ChannelAxis> of;  // by node or input; there is no entry where channels cannot be determined (a product of activations)

    // The stream that a site, a parameter or an input writes; none where the node has no channels of its own (a depthwise convolution, matmul).
    std::optional<std::size_t> written_by(const std::string& name) const;
};

Streams streams_of(const Graph& graph);

// Whether a node is a convolution with one filter for each channel, so that each output channel comes from one input channel.
bool is_depthwise(const Node& node);

}  // namespace loopegg
