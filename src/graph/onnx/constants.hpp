// The values of an ONNX file that are known before it runs: initializers, constants, and what small operators make of them.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "graph/onnx/onnx_model.hpp"

namespace loopegg {

using OnnxConstants = std::map<std::string, OnnxTensor>;

// The node's only output when all its inputs are constants and the operator is one that exporters use on constants (shape arithmetic,
// transposed weights); nothing otherwise.
std::optional<OnnxTensor> fold(const OnnxNode& node, const OnnxConstants& constants);

std::optional<double> scalar_of(const OnnxTensor& tensor);            // of a tensor with one element
std::vector<float> floats_of(const OnnxTensor& tensor);               // whatever its kind
std::optional<std::vector<std::int64_t>> integers_of(const OnnxTensor& tensor);

// Attributes by kind, with what the standard says when they are absent.
std::int64_t attr_int(const OnnxNode& node, const std::string& name, std::int64_t absent);
double attr_float(const OnnxNode& node, const std::string& name, double absent);
std::string attr_text(const OnnxNode& node, const std::string& name, const std::string& absent);
std::optional<std::vector<std::int64_t>> attr_ints(const OnnxNode& node, const std::string& name);

}  // namespace loopegg
