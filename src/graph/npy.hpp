// NumPy's .npy files, for inputs and outputs of networks.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "graph/graph.hpp"

namespace loopegg {

// float32, float64 and small whole numbers become float32. Throws UserError: no .npy file, truncated, another dtype, Fortran order.
Tensor read_npy(const std::filesystem::path& path);
Tensor parse_npy(const std::string& name, std::string_view bytes);

std::string write_npy(const Tensor& tensor);  // float32, C order

}  // namespace loopegg
