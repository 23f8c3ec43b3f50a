// The values of an ONNX file that are known before it runs.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "graph/onnx/onnx_attrs.hpp"
#include "graph/onnx/onnx_model.hpp"

namespace loopegg {

using OnnxConstants = std::map<std::string, OnnxTensor>;

std::optional<double> scalar_of(const OnnxTensor& tensor);  // of a tensor with one element
std::vector<float> floats_of(const OnnxTensor& tensor);     // of a tensor of any kind
std::optional<std::vector<std::int64_t>> integers_of(const OnnxTensor& tensor);

}  // namespace loopegg
