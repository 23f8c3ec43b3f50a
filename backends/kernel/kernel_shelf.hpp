// Compiled nests as files, so that no process compiles what another did. The kernels of a network are those that tuning measured.
#pragma once
#include <filesystem>

#include "backends/kernel/kernel.hpp"

namespace loopegg {

struct TimedKernel {
    Kernel kernel;
    double seconds = 0;  // of a processor, that it took to compile it
};

class KernelShelf {
public:
    explicit KernelShelf(std::filesystem::path folder = {}) : folder_(std::move(folder)) {}  // without a folder, nothing is kept
    // Compiles as compile_nest does, by a name that is made of the nest. A kernel that is found on the shelf keeps the seconds that it took.
    TimedKernel compile(const Term& nest, const Target& target) const;

private:
    std::filesystem::path folder_;
};

}  // namespace loopegg
