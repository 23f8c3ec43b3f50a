// A CPU kernel made callable in this process: linked, loaded, given threads.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/kernel/aligned_floats.hpp"
#include "backends/kernel/kernel.hpp"
#include "backends/kernel/object_image.hpp"

namespace loopegg {

class LoadedKernel {
public:
    explicit LoadedKernel(const Kernel& kernel);
    ~LoadedKernel();
    LoadedKernel(const LoadedKernel&) = delete;
    LoadedKernel& operator=(const LoadedKernel&) = delete;

    // One address per parameter of the kernel, in order.
    void operator()(std::span<float* const> buffers) const;

private:
    std::unique_ptr<ObjectImage> image_;
    void* library_ = nullptr;  // of the system's loader, where there is no image
    void* entry_ = nullptr;
    std::int64_t turns_ = 0;  // of its parallel loops
};

// The logical output for logical operands, which are laid out as the kernel wants them. `run` calls the kernel: a LoadedKernel, or the emulator of GPUs.
std::vector<float> kernel_output(const Kernel& kernel, const std::vector<std::vector<float>>& operands,
                                 const std::function<void(std::span<float* const>)>& run);

// Links objects into a shared library at `out` with the system's linker. Throws UserError with its words.
void link_shared(const std::vector<std::string>& objects, const std::string& out);

}  // namespace loopegg
