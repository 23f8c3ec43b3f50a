// The bytes of ONNX tensors as numbers, and the files next to a model that hold such bytes. This file needs no protobuf.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/onnx/onnx_model.hpp"

namespace loopegg {

// How many elements a tensor of these dimensions has, or -1 when a dimension is negative or there are absurdly many elements.
std::int64_t elements_of(const std::vector<std::int64_t>& dims);

// Bytes of an element of a type (by ONNX's numbers) as they are in raw data; 0 for types that are not read.
std::size_t element_width(int type);

// Fills the numbers of `out` from raw data of a type.
void take_bytes(std::string_view raw, int type, OnnxTensor& out);

// Reads the values that a tensor keeps in another file: only from a plain file in the model's own folder, and only as many bytes as the tensor needs.
// Returns what is wrong, or "".
std::string take_from_elsewhere(const std::string& name, const std::string& folder, OnnxTensor& out);

}  // namespace loopegg
