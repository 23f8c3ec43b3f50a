// An opaque node as text, and its run on float32 values: what a compiled network needs of an opaque node. This needs the standard library and JSON alone.
#pragma once
#include <string>
#include <vector>

#include "graph/onnx/evaluate/evaluate.hpp"
#include "graph/onnx/onnx_model.hpp"

namespace loopegg {

// Our values are float32: whole numbers and truth values travel as float32, and an element that float32 cannot hold is an error when it is met.
struct OpaqueNode {
    struct Input {
        int from = -1;  // the node's input of this number; -1: a constant, or left out
        int type = 1;   // what the operator takes, by ONNX's numbers
        OnnxTensor constant{};
        bool absent = false;
    };
    OnnxNode node;  // op, attributes, names of outputs
    std::int64_t opset = 17;
    std::vector<Input> inputs;
};

std::string write_opaque(const OpaqueNode& node);
OpaqueNode read_opaque(const std::string& text);  // throws EvaluationProblem

struct FloatView {
    std::vector<std::int64_t> shape;
    const float* values;
};
struct OpaqueResult {
    std::vector<std::int64_t> shape;
    std::vector<float> values;
    int type;  // of the operator's result, by ONNX's numbers
};
// Throws EvaluationProblem.
OpaqueResult run_opaque(const OpaqueNode& node, std::size_t output, const std::vector<FloatView>& inputs);

}  // namespace loopegg

// For compiled networks: 0 when done. `dims` holds, one input after another, its rank and its dimensions.
extern "C" int loopegg_run_opaque(const char* node, int output, int inputs, const float* const* values, const long* dims, float* out, long count);
