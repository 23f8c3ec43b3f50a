// Runs a CUDA kernel's text on the CPU, one thread per CUDA thread and a real barrier: how emitted code is checked with no GPU.
#pragma once
#include <span>

#include "backends/kernel/kernel.hpp"

namespace loopegg {

// One address per parameter of the kernel, in their order. Slow; for small shapes.
void emulate_cuda(const Kernel& kernel, std::span<float* const> buffers);

}  // namespace loopegg
