// What one standard ONNX operator makes of tensors. The evaluator folds constants, gives opaque nodes their shapes, and runs them. It needs the
// standard library alone, because it is also linked into compiled networks.
#pragma once
#include <span>
#include <stdexcept>

#include "graph/onnx/onnx_model.hpp"

namespace loopegg {

// Why an operator cannot be evaluated on these tensors: a broken node, or more elements than anyone should hold.
struct EvaluationProblem : std::runtime_error {
    using std::runtime_error::runtime_error;
};

bool can_evaluate(const OnnxNode& node);

// Says, in words for the user, which unknown values the shape of the result depends on. Empty where the shapes of the inputs and the known inputs suffice.
std::string shape_from_data(const OnnxNode& node, const std::vector<bool>& known);

// Gives all outputs. An input that is left out is null. Throws EvaluationProblem.
std::vector<OnnxTensor> evaluate(const OnnxNode& node, std::span<const OnnxTensor* const> inputs, std::int64_t opset);

}  // namespace loopegg
