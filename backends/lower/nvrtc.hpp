// Cubins from CUDA C with NVIDIA's run-time compiler: no toolkit, no driver, no GPU needed.
#pragma once
#include <string>
#include <vector>

namespace loopegg {

// Machine code for "sm_61" and its kind. Throws UserError with the compiler's words. What was made in this process is not made again: a network's kernels are
// asked for when it is compiled, and when it goes into a round.
std::string make_cubin(const std::string& source, const std::string& architecture);
// Of several, side by side.
std::vector<std::string> make_cubins(const std::vector<std::string>& sources, const std::string& architecture);

}  // namespace loopegg
