#include <dlfcn.h>

#include <cstdlib>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/places.hpp"
#include "fisher/engine.hpp"

namespace loopegg {
namespace {

std::string module_path() {
    if (const char* path = std::getenv("LOOPEGG_FISHER")) return path;
    return module_library("libloopegg_fisher.so", LOOPEGG_FISHER_MODULE).string();
}

TorchRuntime* open_runtime() {
    std::string path = module_path();
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) throw UserError(fmt::format("LibTorch's part of loopegg cannot be opened: {}", dlerror()));
    auto door = reinterpret_cast<TorchRuntime* (*)()>(dlsym(library, "loopegg_torch_runtime"));
    if (!door) throw UserError(fmt::format("{} is not loopegg's LibTorch part: it lacks loopegg_torch_runtime", path));
    return door();
}

}  // namespace

TorchRuntime& torch_runtime() {
    static TorchRuntime* runtime = open_runtime();
    return *runtime;
}

}  // namespace loopegg
