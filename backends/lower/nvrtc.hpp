// Cubins from CUDA C with NVIDIA's run-time compiler: no toolkit, no driver, no GPU needed.
#pragma once
#include <string>

namespace loopegg {

// Machine code for "sm_61" and its kind. Throws UserError with the compiler's words.
std::string make_cubin(const std::string& source, const std::string& architecture);

}  // namespace loopegg
