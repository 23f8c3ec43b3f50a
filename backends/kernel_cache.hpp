// Kernels that were compiled before: versions of a network differ in few of theirs.
#pragma once
#include <future>
#include <map>
#include <mutex>
#include <string>

#include "backends/kernel.hpp"

namespace loopegg {

class KernelCache {
public:
    struct Entry {
        Kernel kernel;
        double seconds = 0;   // of a processor, that it took to compile it
    };
    // As compile_nest, by a name that is made of the nest. Several threads may ask at once: who comes second waits for the first.
    Entry compile(const Term& nest, const Target& target);

private:
    std::mutex mutex_;
    std::map<std::string, std::shared_future<Entry>> known_;   // by target and nest
};

}  // namespace loopegg
