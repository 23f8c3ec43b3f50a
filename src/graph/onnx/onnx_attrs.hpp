// Attributes of ONNX nodes by kind, with what the standard says when they are absent, and the values of constants.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/onnx/onnx_model.hpp"

namespace loopegg {

std::int64_t attr_int(const OnnxNode& node, const std::string& name, std::int64_t absent);
double attr_float(const OnnxNode& node, const std::string& name, double absent);  // gives 1e-5 for 1e-5f
std::string attr_text(const OnnxNode& node, const std::string& name, const std::string& absent);
std::optional<std::vector<std::int64_t>> attr_ints(const OnnxNode& node, const std::string& name);
std::optional<std::vector<float>> attr_floats(const OnnxNode& node, const std::string& name);
std::optional<std::vector<std::string>> attr_texts(const OnnxNode& node, const std::string& name);
const OnnxTensor* attr_tensor(const OnnxNode& node, const std::string& name);  // null when absent

// The values that are known before the network runs.
using OnnxConstants = std::map<std::string, OnnxTensor>;

std::optional<double> scalar_of(const OnnxTensor& tensor);  // of a tensor with one element
std::vector<float> floats_of(const OnnxTensor& tensor);     // of a tensor of any kind
std::optional<std::vector<std::int64_t>> integers_of(const OnnxTensor& tensor);

}  // namespace loopegg
