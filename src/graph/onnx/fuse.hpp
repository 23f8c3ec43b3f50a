// Finds, in an ONNX file, the operators that exporters take apart: gelu, silu, layer norm, and a matrix product with its bias.
#pragma once
#include "graph/onnx/constants.hpp"

namespace loopegg {

// Replaces each such group by one node, named as the group's last: Gelu, Silu, LayerNormalization, or Linear (inputs x, weight
// [in, out], bias). Silu and Linear are names of ours.
void fuse_patterns(OnnxModel& model, const OnnxConstants& constants);

}  // namespace loopegg
