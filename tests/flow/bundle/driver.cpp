// Stands for libcuda.so.1, with one device: this process's memory. A cubin that is found in a folder of LOOPEGG_EMULATED runs as the CUDA C beside it says, one
// thread after another or all at once where they wait for each other. Any other "cubin" is a word: what its kernel does. A kernel of another word adds one to
// its first argument. An illegal address breaks the context for good.
#include <dlfcn.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "backends/kernel/cuda_prelude.hpp"
#include "cuda_driver.h"

namespace {

namespace fs = std::filesystem;

constexpr CUresult illegal_address = 700;
bool broken = false;
CUresult now() { return broken ? illegal_address : CUDA_SUCCESS; }
void* host(CUdeviceptr p) { return reinterpret_cast<void*>(p); }

struct Launch {
    CUfunction kernel;
    unsigned grid[3], block[3];
    std::vector<CUdeviceptr> arguments;
};
struct Copy {
    CUdeviceptr to, from;
    std::size_t to_pitch, from_pitch, width, height;
};
// What a stream was given while it was captured, in order.
struct Recorded {
    bool is_copy;
    Launch launch;
    Copy copy;
};
std::vector<Recorded>* capturing = nullptr;

std::string text_of(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    std::stringstream s;
    s << in.rdbuf();
    return s.str();
}

}  // namespace

struct CUmod_st {
    std::string does;
    fs::path source;  // CUDA C, of a cubin
    std::size_t takes = 1;
    std::map<std::string, void (*)(void**)> built;  // by launch
};
struct CUfunc_st {
    CUmodule module;
    std::string symbol;
};
struct CUgraph_st {
    std::vector<Recorded> all;
};
struct CUgraphExec_st {
    std::vector<Recorded> all;
};

namespace {

fs::path source_of(const void* image) {
    const char* folders = std::getenv("LOOPEGG_EMULATED");
    std::stringstream all(folders ? folders : "");
    for (std::string folder; std::getline(all, folder, ':');)
        for (const auto& entry : fs::directory_iterator(folder)) {
            if (entry.path().extension() != ".cubin") continue;
            const std::string cubin = text_of(entry.path());
            std::size_t same = 0;
            while (same < cubin.size() && static_cast<const char*>(image)[same] == cubin[same]) ++same;
            if (same == cubin.size()) return fs::path(entry.path()).replace_extension(".cu");
        }
    return {};
}

void emulate(const Launch& l) {
    CUmodule m = l.kernel->module;
    const std::string code = text_of(m->source);
    const unsigned threads = l.block[0] * l.block[1] * l.block[2], blocks = l.grid[0] * l.grid[1] * l.grid[2];
    const std::string shape = std::to_string(threads) + " " + std::to_string(blocks);
    auto& run = m->built[shape];
    if (!run) {
        const bool waits = code.find("__syncthreads") != code.npos;
        std::ostringstream text;
        text << loopegg::cuda_prelude << code << "\nextern \"C\" void run_all(void** a) {\n    std::barrier<> all(" << (waits ? threads : 1)
             << ");\n    block_barrier = &all;\n    auto work = [&](int t) {\n        threadIdx = {t % " << l.block[0] << ", t / " << l.block[0] << " % "
             << l.block[1] << ", t / " << l.block[0] * l.block[1] << "};\n        for (int b = 0; b < " << blocks << "; ++b) {\n            blockIdx = {b % "
             << l.grid[0] << ", b / " << l.grid[0] << " % " << l.grid[1] << ", b / " << l.grid[0] * l.grid[1] << "};\n            " << l.kernel->symbol << "(";
        for (std::size_t i = 0; i < l.arguments.size(); ++i) text << (i ? ", " : "") << "(float*)a[" << i << "]";
        text << ");\n" << (waits ? "            __syncthreads();\n" : "") << "        }\n    };\n";
        if (waits)
            text << "    std::vector<std::thread> team;\n    for (int t = 0; t < " << threads
                 << "; ++t) team.emplace_back(work, t);\n    for (auto& t : team) t.join();\n}\n";
        else
            text << "    for (int t = 0; t < " << threads << "; ++t) work(t);\n}\n";
        const fs::path folder = fs::temp_directory_path() / ("emulated-" + std::to_string(std::hash<std::string>{}(text.str())));
        fs::create_directories(folder);
        std::ofstream(folder / "kernel.cpp") << text.str();
        const std::string command =
            "c++ -std=c++20 -O1 -w -shared -fPIC " + (folder / "kernel.cpp").string() + " -o " + (folder / "kernel.so").string() + " -lpthread";
        if (std::system(command.c_str()) != 0) std::abort();
        run = reinterpret_cast<void (*)(void**)>(dlsym(dlopen((folder / "kernel.so").c_str(), RTLD_NOW | RTLD_LOCAL), "run_all"));
    }
    std::vector<void*> arguments;
    for (CUdeviceptr a : l.arguments) arguments.push_back(host(a));
    run(arguments.data());
}

void perform(const Recorded& r) {
    if (r.is_copy) {
        for (std::size_t row = 0; row < r.copy.height; ++row)
            std::memmove(host(r.copy.to + row * r.copy.to_pitch), host(r.copy.from + row * r.copy.from_pitch), r.copy.width);
        return;
    }
    const CUmodule m = r.launch.kernel->module;
    if (!m->source.empty()) return emulate(r.launch);
    if (m->does == "crash") std::raise(SIGSEGV);
    if (m->does == "late") std::raise(SIGALRM);  // as the clock does that the runner set
    if (m->does == "illegal")
        broken = true;
    else
        *static_cast<float*>(host(r.launch.arguments[0])) += 1;
}

CUresult take(Recorded r) {
    if (capturing)
        capturing->push_back(std::move(r));
    else
        perform(r);
    return CUDA_SUCCESS;  // what goes wrong there is told later
}

// How many parameters the text of a kernel has.
std::size_t parameters(const std::string& code, const std::string& symbol) {
    const std::size_t open = code.find('(', code.find(symbol + "("));
    std::size_t commas = 0;
    for (std::size_t i = open; code[i] != ')'; ++i) commas += code[i] == ',';
    return commas + 1;
}

}  // namespace

extern "C" {

CUresult cuGetErrorName(CUresult, const char** name) { return *name = "CUDA_ERROR_ILLEGAL_ADDRESS", CUDA_SUCCESS; }
CUresult cuInit(unsigned) { return std::getenv("NO_DEVICE") ? illegal_address : CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice* d, int) { return *d = 0, now(); }
CUresult cuDevicePrimaryCtxRetain(CUcontext* c, CUdevice) { return *c = nullptr, now(); }
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) { return now(); }
CUresult cuCtxPushCurrent_v2(CUcontext) { return now(); }
CUresult cuCtxPopCurrent_v2(CUcontext* c) { return *c = nullptr, now(); }
CUresult cuStreamCreate(CUstream* s, unsigned) { return *s = reinterpret_cast<CUstream>(1), now(); }
CUresult cuStreamDestroy_v2(CUstream) { return now(); }
CUresult cuStreamSynchronize(CUstream) { return now(); }
CUresult cuStreamBeginCapture_v2(CUstream, int) { return capturing = new std::vector<Recorded>, now(); }
CUresult cuStreamEndCapture(CUstream, CUgraph* g) {
    *g = new CUgraph_st{*capturing};
    delete capturing;
    capturing = nullptr;
    return now();
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* ready, CUgraph g, unsigned long long) { return *ready = new CUgraphExec_st{g->all}, now(); }
CUresult cuGraphLaunch(CUgraphExec ready, CUstream) {
    for (const Recorded& r : ready->all)
        if (r.is_copy || !r.launch.kernel->module->source.empty()) perform(r);  // kernels that are words ran once, and are only timed
    return now();
}
CUresult cuGraphExecDestroy(CUgraphExec ready) { return delete ready, now(); }
CUresult cuGraphDestroy(CUgraph g) { return delete g, now(); }
CUresult cuEventCreate(CUevent* e, unsigned) { return *e = reinterpret_cast<CUevent>(1), now(); }
CUresult cuEventRecord(CUevent, CUstream) { return now(); }
CUresult cuEventSynchronize(CUevent) { return now(); }
CUresult cuEventElapsedTime(float* ms, CUevent, CUevent) { return *ms = 1, now(); }
CUresult cuEventDestroy_v2(CUevent) { return now(); }
CUresult cuMemAlloc_v2(CUdeviceptr* p, std::size_t bytes) { return *p = reinterpret_cast<CUdeviceptr>(std::malloc(bytes)), now(); }
CUresult cuMemFree_v2(CUdeviceptr p) { return std::free(host(p)), now(); }
CUresult cuMemsetD8_v2(CUdeviceptr p, unsigned char value, std::size_t bytes) { return std::memset(host(p), value, bytes), now(); }
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t bytes) { return std::memcpy(host(to), from, bytes), now(); }
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t bytes) { return std::memcpy(to, host(from), bytes), now(); }
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes, CUstream) { return std::memcpy(host(to), from, bytes), now(); }
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream) { return std::memcpy(to, host(from), bytes), now(); }
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream) { return take({true, {}, {to, from, 0, 0, bytes, 1}}); }
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* c, CUstream) {
    return take({true, {}, {c->dstDevice, c->srcDevice, c->dstPitch, c->srcPitch, c->WidthInBytes, c->Height}});
}
CUresult cuModuleLoadData(CUmodule* module, const void* image) {
    *module = new CUmod_st{static_cast<const char*>(image), source_of(image), 1, {}};
    return now();
}
CUresult cuModuleUnload(CUmodule module) { return delete module, now(); }
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* symbol) {
    *function = new CUfunc_st{module, symbol};
    if (!module->source.empty()) module->takes = parameters(text_of(module->source), symbol);
    return now();
}
CUresult cuLaunchKernel(CUfunction kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned, CUstream, void** arguments,
                        void**) {
    Recorded r{false, {kernel, {gx, gy, gz}, {bx, by, bz}, {}}, {}};
    for (std::size_t i = 0; i < kernel->module->takes; ++i) r.launch.arguments.push_back(*static_cast<CUdeviceptr*>(arguments[i]));
    return take(std::move(r));
}
}
