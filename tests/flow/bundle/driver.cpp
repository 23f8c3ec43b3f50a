// A driver with one device: this process's memory. A kernel adds one to its first argument, or does what its "cubin"
// says; an illegal address breaks the context for good.
#include "cuda.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

struct Module {
    std::string does;
};

namespace {
constexpr CUresult illegal_address = 700;
bool broken = false;
CUresult now() { return broken ? illegal_address : CUDA_SUCCESS; }
void* host(CUdeviceptr p) { return reinterpret_cast<void*>(p); }
}  // namespace

CUresult cuGetErrorName(CUresult, const char** name) { return *name = "CUDA_ERROR_ILLEGAL_ADDRESS", CUDA_SUCCESS; }
CUresult cuInit(unsigned) { return std::getenv("NO_DEVICE") ? illegal_address : CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice*, int) { return now(); }
CUresult cuDevicePrimaryCtxRetain(CUcontext*, CUdevice) { return now(); }
CUresult cuCtxSetCurrent(CUcontext) { return now(); }
CUresult cuStreamCreate(CUstream*, unsigned) { return now(); }
CUresult cuStreamSynchronize(CUstream) { return now(); }
CUresult cuStreamBeginCapture(CUstream, int) { return now(); }
CUresult cuStreamEndCapture(CUstream, CUgraph*) { return now(); }
CUresult cuGraphInstantiateWithFlags(CUgraphExec*, CUgraph, unsigned long long) { return now(); }
CUresult cuGraphLaunch(CUgraphExec, CUstream) { return now(); }
CUresult cuGraphExecDestroy(CUgraphExec) { return now(); }
CUresult cuGraphDestroy(CUgraph) { return now(); }
CUresult cuEventCreate(CUevent*, unsigned) { return now(); }
CUresult cuEventRecord(CUevent, CUstream) { return now(); }
CUresult cuEventSynchronize(CUevent) { return now(); }
CUresult cuEventElapsedTime(float* ms, CUevent, CUevent) { return *ms = 1, now(); }
CUresult cuEventDestroy(CUevent) { return now(); }
CUresult cuMemAlloc(CUdeviceptr* p, std::size_t bytes) { return *p = reinterpret_cast<CUdeviceptr>(std::malloc(bytes)), now(); }
CUresult cuMemFree(CUdeviceptr p) { return std::free(host(p)), now(); }
CUresult cuMemsetD8(CUdeviceptr p, unsigned char value, std::size_t bytes) { return std::memset(host(p), value, bytes), now(); }
CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, std::size_t bytes) { return std::memcpy(host(to), from, bytes), now(); }
CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, std::size_t bytes) { return std::memcpy(to, host(from), bytes), now(); }
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream) { return std::memmove(host(to), host(from), bytes), now(); }
CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D* c, CUstream) {
    for (std::size_t row = 0; row < c->Height; ++row)
        std::memmove(host(c->dstDevice + row * c->dstPitch), host(c->srcDevice + row * c->srcPitch), c->WidthInBytes);
    return now();
}
CUresult cuModuleLoadData(CUmodule* module, const void* text) { return *module = new Module{static_cast<const char*>(text)}, now(); }
CUresult cuModuleUnload(CUmodule module) { return delete module, now(); }
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char*) { return *function = module, now(); }
CUresult cuLaunchKernel(CUfunction kernel, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void** arguments, void**) {
    if (kernel->does == "crash") std::raise(SIGSEGV);
    if (kernel->does == "late") std::raise(SIGALRM);   // as the clock does that the runner set
    if (kernel->does == "illegal") broken = true;
    else *static_cast<float*>(host(*static_cast<CUdeviceptr*>(arguments[0]))) += 1;
    return CUDA_SUCCESS;
}
