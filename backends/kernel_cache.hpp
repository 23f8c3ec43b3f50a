// Kernels that were compiled before: versions of a network differ in few of theirs.
#pragma once
#include <map>
#include <mutex>
#include <string>

#include "backends/kernel.hpp"

namespace loopegg {

class KernelCache {
public:
    // As compile_nest, by a name that is made of the nest. Several threads may ask at once.
    Kernel compile(const Term& nest, const Target& target);

private:
    std::mutex mutex_;
    std::map<std::string, Kernel> known_;   // by target and nest
};

}  // namespace loopegg
