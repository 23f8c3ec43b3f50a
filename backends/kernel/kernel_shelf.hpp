// Compiled nests as files, so that no process compiles what another process has compiled. So the kernels of a network are those that tuning measured.
#pragma once
#include <filesystem>

#include "backends/kernel/kernel.hpp"

namespace loopegg {

struct TimedKernel {
    Kernel kernel;
    double seconds = 0;  // processor time of compiling the kernel
};

class KernelShelf {
public:
    explicit KernelShelf(std::filesystem::path folder = {}) : folder_(std::move(folder)) {}  // without a folder, nothing is kept
    // Compiles as compile_nest does, under a name that is made from the nest. A kernel that is found on the shelf keeps the seconds that it once took.
    TimedKernel compile(const Term& nest, const Target& target) const;
    // Puts the code of a nest on the shelf, which was compiled elsewhere.
    void put(const Term& nest, const Target& target, const std::string& code, double seconds = 0) const;

private:
    std::filesystem::path folder_;
};

}  // namespace loopegg
