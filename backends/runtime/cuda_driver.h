/* The part of CUDA's driver that loopegg's code calls, found in libcuda.so.1 when a program runs: building and running need no CUDA toolkit. */
#pragma once
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st* CUcontext;
typedef struct CUstream_st* CUstream;
typedef struct CUmod_st* CUmodule;
typedef struct CUfunc_st* CUfunction;
typedef struct CUgraph_st* CUgraph;
typedef struct CUgraphExec_st* CUgraphExec;
typedef struct CUevent_st* CUevent;
typedef struct {
    size_t srcXInBytes, srcY;
    int srcMemoryType;
    const void* srcHost;
    CUdeviceptr srcDevice;
    void* srcArray;
    size_t srcPitch, dstXInBytes, dstY;
    int dstMemoryType;
    void* dstHost;
    CUdeviceptr dstDevice;
    void* dstArray;
    size_t dstPitch, WidthInBytes, Height;
} CUDA_MEMCPY2D;
enum { CUDA_SUCCESS = 0, CU_MEMORYTYPE_DEVICE = 2, CU_STREAM_NON_BLOCKING = 1, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1 };

/* A name of ours, the driver's symbol, what it takes. */
// clang-format off
#define LOOPEGG_CUDA_CALLS(call)                                                                                                    \
    call(error_name, "cuGetErrorName", (CUresult, const char**))                                                                    \
    call(init, "cuInit", (unsigned))                                                                                                \
    call(device, "cuDeviceGet", (CUdevice*, int))                                                                                   \
    call(retain, "cuDevicePrimaryCtxRetain", (CUcontext*, CUdevice))                                                                \
    call(release, "cuDevicePrimaryCtxRelease_v2", (CUdevice))                                                                       \
    call(push, "cuCtxPushCurrent_v2", (CUcontext))                                                                                  \
    call(pop, "cuCtxPopCurrent_v2", (CUcontext*))                                                                                   \
    call(stream, "cuStreamCreate", (CUstream*, unsigned))                                                                           \
    call(end_stream, "cuStreamDestroy_v2", (CUstream))                                                                              \
    call(wait, "cuStreamSynchronize", (CUstream))                                                                                   \
    call(capture, "cuStreamBeginCapture_v2", (CUstream, int))                                                                       \
    call(end_capture, "cuStreamEndCapture", (CUstream, CUgraph*))                                                                   \
    call(launch_graph, "cuGraphLaunch", (CUgraphExec, CUstream))                                                                    \
    call(end_ready, "cuGraphExecDestroy", (CUgraphExec))                                                                            \
    call(end_graph, "cuGraphDestroy", (CUgraph))                                                                                    \
    call(event, "cuEventCreate", (CUevent*, unsigned))                                                                              \
    call(note, "cuEventRecord", (CUevent, CUstream))                                                                                \
    call(await, "cuEventSynchronize", (CUevent))                                                                                    \
    call(elapsed, "cuEventElapsedTime", (float*, CUevent, CUevent))                                                                 \
    call(end_event, "cuEventDestroy_v2", (CUevent))                                                                                 \
    call(allocate, "cuMemAlloc_v2", (CUdeviceptr*, size_t))                                                                         \
    call(free_memory, "cuMemFree_v2", (CUdeviceptr))                                                                                \
    call(fill, "cuMemsetD8_v2", (CUdeviceptr, unsigned char, size_t))                                                               \
    call(upload, "cuMemcpyHtoD_v2", (CUdeviceptr, const void*, size_t))                                                             \
    call(download, "cuMemcpyDtoH_v2", (void*, CUdeviceptr, size_t))                                                                 \
    call(upload_on, "cuMemcpyHtoDAsync_v2", (CUdeviceptr, const void*, size_t, CUstream))                                           \
    call(download_on, "cuMemcpyDtoHAsync_v2", (void*, CUdeviceptr, size_t, CUstream))                                               \
    call(move, "cuMemcpyDtoDAsync_v2", (CUdeviceptr, CUdeviceptr, size_t, CUstream))                                                \
    call(move_rows, "cuMemcpy2DAsync_v2", (const CUDA_MEMCPY2D*, CUstream))                                                         \
    call(load, "cuModuleLoadData", (CUmodule*, const void*))                                                                        \
    call(unload, "cuModuleUnload", (CUmodule))                                                                                      \
    call(function, "cuModuleGetFunction", (CUfunction*, CUmodule, const char*))                                                     \
    call(launch, "cuLaunchKernel",                                                                                                  \
         (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**, void**))
// clang-format on

typedef struct {
#define LOOPEGG_CUDA_MEMBER(name, symbol, takes) CUresult(*name) takes;
    LOOPEGG_CUDA_CALLS(LOOPEGG_CUDA_MEMBER)
#undef LOOPEGG_CUDA_MEMBER
    CUresult (*instantiate)(CUgraphExec*, CUgraph, unsigned long long); /* one of these two: the other is of older drivers */
    CUresult (*instantiate_before)(CUgraphExec*, CUgraph, void*, char*, size_t);
} loopegg_cuda;

/* 0 when found; else `why` shows what is missing. LOOPEGG_CUDA_DRIVER names another library than libcuda.so.1. */
static inline int loopegg_find_cuda(loopegg_cuda* cuda, char* why, size_t room) {
    const char* named = getenv("LOOPEGG_CUDA_DRIVER");
    void* library = dlopen(named && *named ? named : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return snprintf(why, room, "the driver of the GPU cannot be loaded: %s", dlerror()), -1;
    void* found;
#define LOOPEGG_CUDA_FIND(name, symbol, takes)                                                            \
    found = dlsym(library, symbol);                                                                       \
    if (!found) return snprintf(why, room, "the driver of the GPU is too old: it has no %s", symbol), -1; \
    memcpy(&cuda->name, &found, sizeof found);
    LOOPEGG_CUDA_CALLS(LOOPEGG_CUDA_FIND)
#undef LOOPEGG_CUDA_FIND
    found = dlsym(library, "cuGraphInstantiateWithFlags");
    memcpy(&cuda->instantiate, &found, sizeof found);
    found = dlsym(library, "cuGraphInstantiate_v2");
    if (!found) found = dlsym(library, "cuGraphInstantiate");
    memcpy(&cuda->instantiate_before, &found, sizeof found);
    if (!cuda->instantiate && !cuda->instantiate_before) return snprintf(why, room, "the driver of the GPU is too old: it has no graphs"), -1;
    return 0;
}
