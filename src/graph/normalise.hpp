// Turns a restricted node into an ordinary operator where there is one: block-diagonal channels are groups, a part of the kernel is a smaller kernel.
#pragma once
#include <cstdint>
#include <optional>

#include "graph/graph.hpp"

namespace loopegg {

// The number of groups when the node's domain is exactly that many diagonal blocks of output and input channels (within each
// group that it has), and restricts nothing else. conv2d only.
std::optional<std::int64_t> as_groups(const Node& node);

// The kernel that is left when the domain is a strided range of kh and of kw, and restricts nothing else.
struct KernelPart {
    std::vector<std::int64_t> kernel, padding, dilation;
};
std::optional<KernelPart> as_kernel(const Node& node);

// The same network, in which every domain that an ordinary operator can express is turned into that operator. carry_weights carries the weights over.
Graph normalise(Graph graph);

}  // namespace loopegg
