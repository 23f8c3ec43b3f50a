// Finds, in an ONNX file, the operators that exporters take apart: gelu, silu, layer norm, and a matrix product with its bias.
#pragma once
#include "graph/onnx/onnx_attrs.hpp"

namespace loopegg {

// Replaces each such group by one node, which has the name of the group's last node. Its operator is Gelu, Silu, LayerNormalization, or Linear
// (inputs x, weight [in, out], bias). Silu and Linear are operators of ours, not of ONNX.
void fuse_patterns(OnnxModel& model, const OnnxConstants& constants);

}  // namespace loopegg
