// Brings models of old opsets to the opset that the reader knows best, by ONNX's own checker and version converter.
#pragma once
#include <string>

#include "graph/onnx/onnx_model.hpp"

namespace loopegg {

constexpr std::int64_t upgraded_opset = 13;  // since then attributes that may be computed are inputs, and softmax is over one axis

// Leaves newer models, and models with subgraphs or non-standard operators inside, as they are. libonnx trusts what it reads. So it runs in a process of
// its own, with limits of time and memory, without the network, programs and files. Where the upgrade fails, returns why and leaves the model as it was.
std::string upgrade_opset(OnnxModel& model);

}  // namespace loopegg
