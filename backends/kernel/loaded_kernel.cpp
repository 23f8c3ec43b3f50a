#include "backends/kernel/loaded_kernel.hpp"

#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cstring>

#include "backends/kernel/on_team.hpp"
#include "backends/runtime/loopegg_runtime.h"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/scratch.hpp"

extern char** environ;
// The helpers that generated code reaches through pointers of the same name in its own library.
extern "C" {
extern void* __TVMBackendParallelLaunch;
extern void* __TVMBackendAllocWorkspace;
extern void* __TVMBackendFreeWorkspace;
}

namespace loopegg {

std::vector<float> kernel_output(const Kernel& kernel, const std::vector<std::vector<float>>& operands,
                                 const std::function<void(std::span<float* const>)>& run) {
    std::vector<AlignedFloats> buffers;
    std::vector<float*> addresses;
    for (std::size_t b = 0; b < kernel.parameters.size(); ++b) {
        if (b == 0)
            buffers.emplace_back(static_cast<std::size_t>(kernel.parameters[b].elements));
        else
            buffers.emplace_back(std::span<const float>(to_storage(kernel.parameters[b], operands[b])));
        addresses.push_back(buffers.back().data());
    }
    run(addresses);
    return from_storage(kernel.parameters[0], buffers[0].span());
}

void link_shared(const std::vector<std::string>& objects, const std::string& out) {
    std::vector<std::string> words{"ld", "-shared", "-o", out};
    words.insert(words.end(), objects.begin(), objects.end());
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    pid_t child = 0;
    if (int error = posix_spawnp(&child, "ld", nullptr, nullptr, argv.data(), environ))
        throw UserError(std::string("cannot run the linker 'ld': ") + std::strerror(error));
    int status = 0;
    if (waitpid(child, &status, 0) < 0 || status != 0) throw UserError("the linker 'ld' failed on " + out);
}

LoadedKernel::LoadedKernel(const Kernel& kernel) : turns_(kernel.turns) {
    if (const std::uint32_t missing = loopeggrt_missing_units(kernel.units))
        throw UserError(std::string("the kernel needs ") + loopeggrt_units_in_words(missing) + ", which this machine does not offer");
    std::string why;
    image_ = ObjectImage::load(kernel.code, why, [](const char* name) { return dlsym(RTLD_DEFAULT, name); });
    if (!image_) {  // the object needs something that only a real linker does
        ScratchFile object(".o"), library(".so");
        write_scratch(object.path(), kernel.code);
        link_shared({object.path().string()}, library.path().string());
        library_ = dlopen(library.path().c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!library_) throw UserError(std::string("cannot load a compiled kernel: ") + dlerror());
    }
    auto find = [&](const char* name) { return image_ ? image_->find(name) : dlsym(library_, name); };
    auto give = [&](const char* name, void* value) {
        if (void* slot = find(name)) *static_cast<void**>(slot) = value;
    };
    give("__TVMBackendParallelLaunch", __TVMBackendParallelLaunch);
    give("__TVMBackendAllocWorkspace", __TVMBackendAllocWorkspace);
    give("__TVMBackendFreeWorkspace", __TVMBackendFreeWorkspace);
    entry_ = find(kernel.symbol.c_str());
    require(entry_ != nullptr, "a compiled kernel has its entry");
}

LoadedKernel::~LoadedKernel() {
    if (library_) dlclose(library_);
}

void LoadedKernel::operator()(std::span<float* const> buffers) const {
    std::vector<loopegg_tensor> tensors(buffers.size());
    std::vector<loopegg_argument> arguments(buffers.size());
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        tensors[i] = {buffers[i], {}};
        arguments[i] = {7, 0, &tensors[i]};
    }
    const OnTeam team(turns_);
    if (reinterpret_cast<loopegg_kernel>(entry_)(nullptr, arguments.data(), static_cast<std::int32_t>(arguments.size()), nullptr) != 0)
        throw UserError("a kernel reported an error");
}

}  // namespace loopegg
