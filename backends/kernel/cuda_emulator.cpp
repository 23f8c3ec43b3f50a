#include "backends/kernel/cuda_emulator.hpp"

#include <dlfcn.h>

#include <fmt/format.h>

#include "backends/kernel/cuda_prelude.hpp"
#include "base/error.hpp"
#include "base/process.hpp"
#include "base/scratch.hpp"
#include "base/text.hpp"

namespace loopegg {
namespace {

// The function that a kernel for tensor cores calls. The threads of a warp wait for one another in it.
constexpr const char* tensor_prelude = R"(static thread_local int thread_number = 0;
static std::vector<std::unique_ptr<std::barrier<>>> warps;
static float operands[32][32][6];   // of an instruction of tensor cores, by warp and thread
static inline float cut_to_tf32(float x) { return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & ~0x1fffu); }
static inline float loopegg_tf32(float x) { return cut_to_tf32(std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) + 0x1000u)); }
// As PTX lays m16n8k8 out: thread 4*g + m has rows g and g + 8 at steps m and m + 4, column g at the same steps, and columns 2*m and 2*m + 1 of the result.
static inline void loopegg_mma_tf32(float* c0, float* c1, float* c2, float* c3, float a0, float a1, float a2, float a3, float b0, float b1) {
    const int warp = thread_number / 32, lane = thread_number % 32;
    const float mine[6]{a0, a1, a2, a3, b0, b1};
    std::copy(mine, mine + 6, operands[warp][lane]);
    warps[warp]->arrive_and_wait();
    float* const c[4]{c0, c1, c2, c3};
    for (int i = 0; i < 4; ++i) {
        const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        for (int k = 0; k < 8; ++k)
            *c[i] += cut_to_tf32(operands[warp][row % 8 * 4 + k % 4][row / 8 + k / 4 * 2]) * cut_to_tf32(operands[warp][column * 4 + k % 4][4 + k / 4]);
    }
    warps[warp]->arrive_and_wait();   // operands are the next instruction's after this
}
static inline std::uint32_t word_of(float x) { return std::bit_cast<std::uint32_t>(x); }
static inline float from_fp16(std::uint32_t half) { return static_cast<float>(std::bit_cast<_Float16>(static_cast<std::uint16_t>(half))); }
static inline float from_bf16(std::uint32_t half) { return std::bit_cast<float>(half << 16); }
static inline std::uint32_t to_fp16(float x) { return std::bit_cast<std::uint16_t>(static_cast<_Float16>(x)); }
static inline std::uint32_t to_bf16(float x) {
    const std::uint32_t bits = word_of(x);
    return x != x ? 0x7fffu : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}
static inline float loopegg_pack_fp16(float low, float high) { return std::bit_cast<float>(to_fp16(low) | to_fp16(high) << 16); }
static inline float loopegg_pack_bf16(float low, float high) { return std::bit_cast<float>(to_bf16(low) | to_bf16(high) << 16); }
// As m16n8k8, but each operand is a word of two numbers.
template <class F>
static inline void mma_of_words(F number, float* const (&c)[4], const float (&mine)[6]) {
    const int warp = thread_number / 32, lane = thread_number % 32;
    std::copy(mine, mine + 6, operands[warp][lane]);
    warps[warp]->arrive_and_wait();
    for (int i = 0; i < 4; ++i) {
        const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        for (int k = 0; k < 8; ++k) {
            const std::uint32_t a = word_of(operands[warp][row % 8 * 4 + k % 4][row / 8 + k / 4 * 2]);
            const std::uint32_t b = word_of(operands[warp][column * 4 + k % 4][4 + k / 4]);
            *c[i] += number(a & 0xffffu) * number(b & 0xffffu);
            *c[i] += number(a >> 16) * number(b >> 16);
        }
    }
    warps[warp]->arrive_and_wait();
}
static inline void loopegg_mma_fp16(float* c0, float* c1, float* c2, float* c3, float a0, float a1, float a2, float a3, float b0, float b1) {
    mma_of_words(from_fp16, {c0, c1, c2, c3}, {a0, a1, a2, a3, b0, b1});
}
static inline void loopegg_mma_bf16(float* c0, float* c1, float* c2, float* c3, float a0, float a1, float a2, float a3, float b0, float b1) {
    mma_of_words(from_bf16, {c0, c1, c2, c3}, {a0, a1, a2, a3, b0, b1});
}
)";

constexpr const char* driver = R"(
extern "C" void emulate(float** a) {{
    std::barrier<> all({threads});
    block_barrier = &all;
    warps.clear();
    for (int first = 0; first < {threads}; first += 32) warps.push_back(std::make_unique<std::barrier<>>(std::min(32, {threads} - first)));
    auto work = [&](int t) {{
        thread_number = t;
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
        std::string(cuda_prelude) + tensor_prelude + kernel.code +
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
