// The bytes of ONNX tensors as numbers, and the files beside a model that hold them. Needs no protobuf.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/onnx/onnx_model.hpp"

namespace loopegg {

// How many elements dims make, or -1 when a dimension is negative or there are absurdly many.
std::int64_t elements_of(const std::vector<std::int64_t>& dims);

// Bytes of an element of a type (by ONNX's numbers) as they stand in raw data; 0 for types that are not read.
std::size_t element_width(int type);

// Raw data of a type as the numbers of `out`.
void take_bytes(std::string_view raw, int type, OnnxTensor& out);

// Reads what a tensor keeps in another file: only a plain file in the model's own folder, and only what the tensor needs of it. Answers what is wrong.
std::string take_from_elsewhere(const std::string& name, const std::string& folder, OnnxTensor& out);

}  // namespace loopegg
