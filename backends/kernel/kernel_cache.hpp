// Keeps kernels that were compiled before, because versions of a network differ in few of their kernels and share the runtime.
#pragma once
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "backends/kernel/kernel.hpp"
#include "base/scratch.hpp"

namespace loopegg {

// Compiled nests as files, so that no process compiles what another process has compiled. So the kernels of a network are those that tuning measured.
struct TimedKernel {
    Kernel kernel;
    double seconds = 0;  // processor time of compiling the kernel
};

class KernelPool {
public:
    explicit KernelPool(std::filesystem::path folder = {}) : folder_(std::move(folder)) {}  // without a folder, nothing is kept
    // Compiles as compile_nest does, under a name that is made from the nest. A kernel that is found on the pool keeps the seconds that it once took.
    TimedKernel compile(const Term& nest, const Target& target) const;
    // Puts the code of a nest on the pool, which was compiled elsewhere.
    void put(const Term& nest, const Target& target, const std::string& code, double seconds = 0) const;

private:
    std::filesystem::path folder_;
};

// The sources of the runtime that every network on CPUs is linked with, and their headers.
constexpr const char* runtime_files[] = {"loopegg_cores.c", "loopegg_entry.c",   "loopegg_network.c", "loopegg_network.h", "loopegg_pace.c",
                                         "loopegg_pace.h",  "loopegg_runtime.h", "loopegg_team.c",    "loopegg_units.c",   "loopegg_weights.h"};

// Where the object of the runtime for this processor is, if loopegg came with one.
std::filesystem::path runtime_object_file(const std::string& architecture);

// Several threads may ask for the same kernel. The second thread waits for the first.
class KernelCache {
public:
    explicit KernelCache(KernelPool pool = KernelPool()) : pool_(std::move(pool)) {}
    // Gives the kernel as KernelPool::compile does.
    TimedKernel compile(const Term& nest, const Target& target);
    // The object, by this C compiler, of the runtime that every network on CPUs is linked with: for processors for which loopegg came with none.
    std::filesystem::path runtime(const std::string& compiler);

private:
    template <class Made>
    Made once(std::map<std::string, std::shared_future<Made>>& known, const std::string& key, std::function<Made()> make);

    KernelPool pool_;
    std::mutex mutex_;
    std::map<std::string, std::shared_future<TimedKernel>> kernels_;                    // by target and nest
    std::map<std::string, std::shared_future<std::shared_ptr<ScratchFile>>> runtimes_;  // by compiler
};

}  // namespace loopegg
