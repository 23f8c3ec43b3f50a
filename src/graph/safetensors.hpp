// safetensors: a length, a JSON header and raw bytes. Nothing in a file is believed before it is checked against the file's size.
#pragma once
#include <filesystem>
#include <string>

#include "base/source.hpp"
#include "graph/graph.hpp"

namespace loopegg {

// Float tensors of any width become float32. Tensors of whole numbers (batch counters) are left out. Throws UserError.
Weights read_safetensors(const std::filesystem::path& path);
Weights parse_safetensors(const std::string& name, std::string_view bytes);

// The same weights always give the same bytes.
std::string write_safetensors(const Weights& weights);

}  // namespace loopegg
