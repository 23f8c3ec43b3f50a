#include "backends/lower/nvrtc.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <map>
#include <mutex>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/places.hpp"
#include "base/team.hpp"
#include "tvm_paths.hpp"

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
        const std::filesystem::path path = package_file("nvidia/cuda_nvrtc/lib/libnvrtc.so.12", site_folder);
        void* so = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!so)
            throw UserError(Diagnostic{std::string("cannot load NVRTC: ") + dlerror(), {}, "run ./loopegg once to set it up, or pip install loopegg[cuda]"});
        auto find = [&](const char* name, auto& f) {
            f = reinterpret_cast<std::remove_reference_t<decltype(f)>>(dlsym(so, name));
            if (!f) throw UserError(std::string("this NVRTC lacks ") + name);
        };
        find("nvrtcCreateProgram", create), find("nvrtcCompileProgram", compile), find("nvrtcDestroyProgram", destroy), find("nvrtcGetCUBINSize", size);
        find("nvrtcGetCUBIN", get), find("nvrtcGetProgramLogSize", log_size), find("nvrtcGetProgramLog", log);
    }
};

std::string compiled(const std::string& source, const std::string& architecture) {
    static const Nvrtc nvrtc;
    const std::string option = "--gpu-architecture=" + architecture;
    const char* options[] = {option.c_str(), "-default-device", "-w"};
    void* program = nullptr;
    if (nvrtc.create(&program, source.c_str(), "kernel.cu", 0, nullptr, nullptr)) throw UserError("NVRTC does not take the source");
    const int failed = nvrtc.compile(program, 3, options);
    std::string result;
    std::size_t size = 0;
    if (failed)
        nvrtc.log_size(program, &size), result.resize(size), nvrtc.log(program, result.data());
    else
        nvrtc.size(program, &size), result.resize(size), nvrtc.get(program, result.data());
    nvrtc.destroy(&program);
    if (failed) throw UserError("NVRTC refuses the kernel: " + result.substr(0, 500));
    return result;
}

// Several threads may ask for the same cubin. The second thread waits for the first.
class Made {
public:
    std::string of(const std::string& source, const std::string& architecture) {
        std::packaged_task<std::string()> task([&] { return compiled(source, architecture); });
        std::shared_future<std::string> answer;
        bool fresh = false;
        {
            const std::lock_guard lock(mutex_);
            if (known_.size() >= most) known_.clear();
            const auto [it, first] = known_.try_emplace(Hasher().add(architecture).add(source).finish());
            if (first) it->second = task.get_future().share();
            answer = it->second, fresh = first;
        }
        if (fresh) task();
        return answer.get();
    }

private:
    static constexpr std::size_t most = 2000;  // some ten megabytes
    std::mutex mutex_;
    std::map<Hash128, std::shared_future<std::string>> known_;
};

}  // namespace

std::string make_cubin(const std::string& source, const std::string& architecture) {
    static Made made;
    return made.of(source, architecture);
}

std::vector<std::string> make_cubins(const std::vector<std::string>& sources, const std::string& architecture) {
    std::vector<std::string> all(sources.size());
    std::atomic<std::size_t> next{0};
    run_together(processors(), [&](std::size_t) {
        for (std::size_t i = next++; i < sources.size(); i = next++) all[i] = make_cubin(sources[i], architecture);
    });
    return all;
}

}  // namespace loopegg
