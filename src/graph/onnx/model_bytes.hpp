// An ONNX model as it comes from the process that parsed it: plain bytes, of which nothing is believed before it is checked.
#pragma once
#include <ostream>
#include <string>
#include <string_view>

#include "graph/onnx/onnx_model.hpp"

namespace loopegg {

void write_model_bytes(const OnnxModel& model, std::ostream& out);

// Throws UserError: the bytes are no model. `file` is for the words.
OnnxModel read_model_bytes(const std::string& file, std::string_view bytes);

}  // namespace loopegg
