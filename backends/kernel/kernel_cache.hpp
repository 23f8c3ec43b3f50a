// Keeps kernels that were compiled before, because versions of a network differ in few of their kernels and share the runtime.
#pragma once
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "backends/kernel/kernel_shelf.hpp"
#include "base/scratch.hpp"

namespace loopegg {

// The sources of the runtime that every network on CPUs is linked with, and their headers.
constexpr const char* runtime_files[] = {"loopegg_cores.c", "loopegg_entry.c",   "loopegg_network.c", "loopegg_network.h", "loopegg_pace.c",
                                         "loopegg_pace.h",  "loopegg_runtime.h", "loopegg_team.c",    "loopegg_units.c",   "loopegg_weights.h"};

// Where the object of the runtime for this processor lies, if loopegg came with one.
std::filesystem::path runtime_object_file(const std::string& architecture);

// Several threads may ask for the same kernel. The second thread waits for the first.
class KernelCache {
public:
    explicit KernelCache(KernelShelf shelf = KernelShelf()) : shelf_(std::move(shelf)) {}
    // Gives the kernel as KernelShelf::compile does.
    TimedKernel compile(const Term& nest, const Target& target);
    // The object, by this C compiler, of the runtime that every network on CPUs is linked with: for processors for which loopegg came with none.
    std::filesystem::path runtime(const std::string& compiler);

private:
    template <class Made>
    Made once(std::map<std::string, std::shared_future<Made>>& known, const std::string& key, std::function<Made()> make);

    KernelShelf shelf_;
    std::mutex mutex_;
    std::map<std::string, std::shared_future<TimedKernel>> kernels_;                    // by target and nest
    std::map<std::string, std::shared_future<std::shared_ptr<ScratchFile>>> runtimes_;  // by compiler
};

}  // namespace loopegg
