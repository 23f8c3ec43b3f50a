#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.hpp"
#include "fisher/engine.hpp"

namespace loopegg {
namespace {

// LOOPEGG_FISHER, else beside the program, else where the build left it.
std::string module_path() {
    if (const char* path = std::getenv("LOOPEGG_FISHER")) return path;
    std::error_code error;
    std::filesystem::path beside = std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / "libloopegg_fisher.so";
    return !error && std::filesystem::exists(beside) ? beside.string() : LOOPEGG_FISHER_MODULE;
}

TorchRoom* open_room() {
    // Threads that spin while they wait starve whoever shares the machine and win nothing measurable here.
    setenv("OMP_WAIT_POLICY", "PASSIVE", 0);
    std::string path = module_path();
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) throw UserError(fmt::format("LibTorch's part of loopegg cannot be opened: {}", dlerror()));
    auto door = reinterpret_cast<TorchRoom* (*)()>(dlsym(library, "loopegg_torch_room"));
    if (!door) throw UserError(fmt::format("{} is not loopegg's LibTorch part: it lacks loopegg_torch_room", path));
    return door();
}

}  // namespace

TorchRoom& torch_room() {
    static TorchRoom* room = open_room();
    return *room;
}

}  // namespace loopegg
