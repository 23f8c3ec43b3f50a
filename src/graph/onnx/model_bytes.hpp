// An ONNX model as it comes from the process that parsed it: plain bytes, which the reader does not trust before it has checked them.
#pragma once
#include <ostream>
#include <string>
#include <string_view>

#include "graph/onnx/onnx_model.hpp"

namespace loopegg {

void write_model_bytes(const OnnxModel& model, std::ostream& out);

// Throws UserError where the bytes are no model. `file` names the file in the message.
OnnxModel read_model_bytes(const std::string& file, std::string_view bytes);

}  // namespace loopegg
