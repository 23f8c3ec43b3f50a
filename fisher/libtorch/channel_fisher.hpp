// The Fisher Potential of every channel of a trained network, from one pass over images.
#pragma once
#include "fisher/engine.hpp"
#include "fisher/libtorch/executor.hpp"

namespace loopegg {

// Batch norms use their stored statistics, so that every image is scored by itself, and the answer does not depend on how many images are shown at once.
ChannelFisher channel_fisher_of(const Graph& graph, const TensorMap& parameters, const LabelledImages& data);

}  // namespace loopegg
