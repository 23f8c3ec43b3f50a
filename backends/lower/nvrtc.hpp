// Cubins from CUDA C with NVIDIA's run-time compiler: no toolkit, no driver, no GPU needed.
#pragma once
#include <string>
#include <vector>

namespace loopegg {

// Machine code for "sm_61" and its kind. Throws UserError with the compiler's words. A process makes each cubin once, because a network's kernels are
// asked for when the network is compiled, and again when it goes into a round.
std::string make_cubin(const std::string& source, const std::string& architecture);
// Makes several cubins side by side.
std::vector<std::string> make_cubins(const std::vector<std::string>& sources, const std::string& architecture);

}  // namespace loopegg
