// Nests of sites with other numbers of channels, as network terms have them: loops over output and input channels first.
#pragma once
#include <cstdint>
#include <optional>

#include "base/term.hpp"
#include "graph/graph.hpp"

namespace loopegg {

struct Statement;

// The naive nest with the loops over channels first, so that rules that split both channel axes find these loops side by side.
Term channels_first(const Statement& statement);
Term channels_first(const Node& node);

// The same site with this many output channels in all, or with so many fewer input channels. None where that is impossible: the nest is restricted, groups
// would have different sizes, or nothing would be left. A depthwise site writes what it reads, so it has no output channels of its own.
std::optional<Term> with_outputs(const Term& nest, std::int64_t channels);
std::optional<Term> with_fewer_inputs(const Term& nest, std::int64_t missing);

// Whether there is one filter for each channel: then each output channel comes from one input channel.
bool is_depthwise(const Statement& statement);
std::int64_t output_channels(const Statement& statement);  // of all groups; 0 where the statement has no output channels of its own
std::int64_t input_channels(const Statement& statement);

}  // namespace loopegg
