// Compiled nests as files, so that no process compiles what another did: the kernels of a network are those that tuning measured.
#pragma once
#include <filesystem>

#include "backends/kernel/kernel.hpp"

namespace loopegg {

struct TimedKernel {
    Kernel kernel;
    double seconds = 0;   // of a processor, that it took to compile it
};

class KernelShelf {
public:
    explicit KernelShelf(std::filesystem::path folder = {}) : folder_(std::move(folder)) {}   // none: nothing is kept
    // As compile_nest, by a name that is made of the nest. What is found on the shelf keeps the seconds that it took.
    TimedKernel compile(const Term& nest, const Target& target) const;

private:
    std::filesystem::path folder_;
};

}  // namespace loopegg
