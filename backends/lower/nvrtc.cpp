#include "backends/lower/nvrtc.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "base/error.hpp"

namespace loopegg {
namespace {

// The entry points that are used, found when the library is opened.
struct Nvrtc {
    int (*create)(void**, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
    int (*compile)(void*, int, const char* const*) = nullptr;
    int (*destroy)(void**) = nullptr;
    int (*size)(void*, std::size_t*) = nullptr;
    int (*get)(void*, char*) = nullptr;
    int (*log_size)(void*, std::size_t*) = nullptr;
    int (*log)(void*, char*) = nullptr;

    Nvrtc() {
        std::filesystem::path path = LOOPEGG_NVRTC;
        if (const char* site = std::getenv("LOOPEGG_SITE")) path = std::filesystem::path(site) / "nvidia/cuda_nvrtc/lib/libnvrtc.so.12";
        void* so = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!so) throw UserError(Diagnostic{std::string("cannot load NVRTC: ") + dlerror(), {}, "run ./loopegg once to set it up"});
        auto find = [&](const char* name, auto& f) {
            f = reinterpret_cast<std::remove_reference_t<decltype(f)>>(dlsym(so, name));
            if (!f) throw UserError(std::string("this NVRTC lacks ") + name);
        };
        find("nvrtcCreateProgram", create), find("nvrtcCompileProgram", compile), find("nvrtcDestroyProgram", destroy), find("nvrtcGetCUBINSize", size);
        find("nvrtcGetCUBIN", get), find("nvrtcGetProgramLogSize", log_size), find("nvrtcGetProgramLog", log);
    }
};

}  // namespace

std::string make_cubin(const std::string& source, const std::string& architecture) {
    static const Nvrtc nvrtc;
    const std::string option = "--gpu-architecture=" + architecture;
    const char* options[] = {option.c_str(), "-default-device", "-w"};
    void* program = nullptr;
    if (nvrtc.create(&program, source.c_str(), "kernel.cu", 0, nullptr, nullptr)) throw UserError("NVRTC does not take the source");
    const int failed = nvrtc.compile(program, 3, options);
    std::string result;
    std::size_t size = 0;
    if (failed) nvrtc.log_size(program, &size), result.resize(size), nvrtc.log(program, result.data());
    else nvrtc.size(program, &size), result.resize(size), nvrtc.get(program, result.data());
    nvrtc.destroy(&program);
    if (failed) throw UserError("NVRTC refuses the kernel: " + result.substr(0, 500));
    return result;
}

}  // namespace loopegg
