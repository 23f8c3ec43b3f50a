/* The part of CUDA's driver that bundle_runner.cpp uses, in main memory, with kernels that do what the text of their "cubin" says (driver.cpp). */
#pragma once
#include <cstddef>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct Context* CUcontext;
typedef struct Stream* CUstream;
typedef struct Module* CUmodule;
typedef struct Module* CUfunction;
typedef struct Graph* CUgraph;
typedef struct Graph* CUgraphExec;
typedef struct Event* CUevent;
struct CUDA_MEMCPY2D {
    int srcMemoryType, dstMemoryType;
    CUdeviceptr srcDevice, dstDevice;
    std::size_t srcPitch, dstPitch, WidthInBytes, Height;
};
enum { CUDA_SUCCESS = 0, CU_MEMORYTYPE_DEVICE = 2, CU_STREAM_NON_BLOCKING = 1, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1, CU_EVENT_DEFAULT = 0 };

CUresult cuGetErrorName(CUresult, const char** name);
CUresult cuInit(unsigned);
CUresult cuDeviceGet(CUdevice*, int);
CUresult cuDevicePrimaryCtxRetain(CUcontext*, CUdevice);
CUresult cuCtxSetCurrent(CUcontext);
CUresult cuStreamCreate(CUstream*, unsigned);
CUresult cuStreamSynchronize(CUstream);
CUresult cuStreamBeginCapture(CUstream, int);
CUresult cuStreamEndCapture(CUstream, CUgraph*);
CUresult cuGraphInstantiateWithFlags(CUgraphExec*, CUgraph, unsigned long long);
CUresult cuGraphLaunch(CUgraphExec, CUstream);
CUresult cuGraphExecDestroy(CUgraphExec);
CUresult cuGraphDestroy(CUgraph);
CUresult cuEventCreate(CUevent*, unsigned);
CUresult cuEventRecord(CUevent, CUstream);
CUresult cuEventSynchronize(CUevent);
CUresult cuEventElapsedTime(float*, CUevent, CUevent);
CUresult cuEventDestroy(CUevent);
CUresult cuMemAlloc(CUdeviceptr*, std::size_t);
CUresult cuMemFree(CUdeviceptr);
CUresult cuMemsetD8(CUdeviceptr, unsigned char, std::size_t);
CUresult cuMemcpyHtoD(CUdeviceptr, const void*, std::size_t);
CUresult cuMemcpyDtoH(void*, CUdeviceptr, std::size_t);
CUresult cuMemcpyDtoDAsync(CUdeviceptr, CUdeviceptr, std::size_t, CUstream);
CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D*, CUstream);
CUresult cuModuleLoadData(CUmodule*, const void*);
CUresult cuModuleUnload(CUmodule);
CUresult cuModuleGetFunction(CUfunction*, CUmodule, const char*);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void** arguments, void**);
