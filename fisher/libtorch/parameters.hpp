// The weights of networks: drawn from a seed, and carried from an original to its variants.
#pragma once
#include <cstdint>

#include "fisher/libtorch/executor.hpp"

namespace loopegg {

// The fan-in that an initialisation must respect: how many values a node's instances read for one output, with domains and groups taken into account.
double fan_in(const Node& node);

// Each float32 tensor depends on the seed, its name and its shape alone. The distribution is He's normal by fan-in for conv2d and uniform by fan-in
// for linear. Norms get ones and zeros.
TensorMap draw_parameters(const Graph& graph, std::uint64_t seed);

// The variant's parameters. They are the original's entries where both networks have them (leading channels, or the blocks on the diagonal where
// only the variant has groups), and drawn from the seed elsewhere. With `rescale`, the weights of a conv2d or linear that reads fewer values for each
// output are scaled up by the root of the ratio of fan-ins, as its own initialisation would be.
TensorMap carry_parameters(const Graph& original, const TensorMap& from, const Graph& variant, std::uint64_t seed, bool rescale);

}  // namespace loopegg
