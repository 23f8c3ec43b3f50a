#include "backends/kernel/cuda_emulator.hpp"

#include <dlfcn.h>

#include <fmt/format.h>

#include "backends/kernel/cuda_prelude.hpp"
#include "base/process.hpp"
#include "base/scratch.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace loopegg {
namespace {

constexpr const char* driver = R"(
extern "C" void emulate(float** a) {{
    std::barrier<> all({threads});
    block_barrier = &all;
    auto work = [&](int t) {{
        threadIdx = {{t % {bx}, t / {bx} % {by}, t / {bx} / {by}}};
        for (int b = 0; b < {blocks}; ++b) {{
            blockIdx = {{b % {gx}, b / {gx} % {gy}, b / {gx} / {gy}}};
            {symbol}({arguments});
            if ({sync}) __syncthreads();   // shared memory is the next block's after this
        }}
    }};
    if (!{sync}) {{
        for (int t = 0; t < {threads}; ++t) work(t);
        return;
    }}
    std::vector<std::thread> team;
    for (int t = 0; t < {threads}; ++t) team.emplace_back(work, t);
    for (auto& t : team) t.join();
}}
)";

}  // namespace

void emulate_cuda(const Kernel& kernel, std::span<float* const> buffers) {
    std::vector<std::string> words;
    for (std::size_t i = 0; i < kernel.arguments.size(); ++i) words.push_back(fmt::format("a[{}]", i));
    const Launch& l = kernel.launch;
    const bool sync = kernel.code.find("__syncthreads") != kernel.code.npos;
    const std::string program =
        cuda_prelude + kernel.code +
        fmt::format(fmt::runtime(driver), fmt::arg("threads", l.threads()), fmt::arg("bx", l.block[0]), fmt::arg("by", l.block[1]),
                    fmt::arg("blocks", l.blocks()), fmt::arg("gx", l.grid[0]), fmt::arg("gy", l.grid[1]), fmt::arg("symbol", kernel.symbol),
                    fmt::arg("arguments", join(words, ", ")), fmt::arg("sync", sync ? "true" : "false"));
    ScratchFile source(".cpp"), library(".so");
    write_scratch(source.path(), program);
    run_or_throw({"c++", "-std=c++20", "-O1", "-w", "-shared", "-fPIC", source.path().string(), "-o", library.path().string(), "-lpthread"},
                 "building an emulated kernel");
    void* loaded = dlopen(library.path().c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!loaded) throw UserError(std::string("cannot load an emulated kernel: ") + dlerror());
    auto* run = reinterpret_cast<void (*)(float**)>(dlsym(loaded, "emulate"));
    std::vector<float*> ordered;
    for (int a : kernel.arguments) ordered.push_back(buffers[static_cast<std::size_t>(a)]);
    run(ordered.data());
    dlclose(loaded);
}

}  // namespace loopegg
