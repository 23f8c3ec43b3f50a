// Runs a CUDA kernel's text on the CPU, with one thread for each CUDA thread and a real barrier. So emitted code is checked without a GPU.
#pragma once
#include <span>

#include "backends/kernel/kernel.hpp"

namespace loopegg {

// Takes one address for each parameter of the kernel, in their order. The emulator is slow, and meant for small shapes.
void emulate_cuda(const Kernel& kernel, std::span<float* const> buffers);

}  // namespace loopegg
