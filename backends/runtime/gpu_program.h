/* A row of kernels and copies on a GPU as one graph: what a compiled network runs, and what the runner of a bundle times. */
#pragma once
#include "cuda_driver.h"

typedef struct {
    CUfunction function;
    unsigned grid[3], block[3];
} gpu_kernel;

typedef struct {
    int kernel; /* -1: a copy of what lies at arguments[1] to arguments[0] */
    int count;  /* of arguments; of a copy, its dimensions */
    const CUdeviceptr* arguments;
    const long* dims; /* of a copy, outermost first: how many, and the distance between two there and here, in floats */
} gpu_step;

enum { gpu_max_arguments = 64 };

static inline CUresult gpu_copy(const loopegg_cuda* cuda, CUdeviceptr to, CUdeviceptr from, const long* d, int rank, CUstream stream) {
    const CUdeviceptr size = sizeof(float);
    if (rank == 1 && d[1] == 1 && d[2] == 1) return cuda->move(to, from, (size_t)d[0] * size, stream);
    if (rank == 1) { /* elements one after another, as rows of one */
        const long rows[6] = {d[0], d[1], d[2], 1, 1, 1};
        return gpu_copy(cuda, to, from, rows, 2, stream);
    }
    if (rank == 2 && d[4] == 1 && d[5] == 1) {
        CUDA_MEMCPY2D rows;
        memset(&rows, 0, sizeof rows);
        rows.srcMemoryType = rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
        rows.srcDevice = from, rows.dstDevice = to;
        rows.srcPitch = (size_t)d[2] * size, rows.dstPitch = (size_t)d[1] * size;
        rows.WidthInBytes = (size_t)d[3] * size, rows.Height = (size_t)d[0];
        return cuda->move_rows(&rows, stream);
    }
    for (long i = 0; i < d[0]; ++i) {
        const CUresult r = gpu_copy(cuda, to + (CUdeviceptr)(i * d[1]) * size, from + (CUdeviceptr)(i * d[2]) * size, d + 3, rank - 1, stream);
        if (r != CUDA_SUCCESS) return r;
    }
    return CUDA_SUCCESS;
}

static inline CUresult gpu_enqueue(const loopegg_cuda* cuda, const gpu_kernel* kernels, const gpu_step* step, CUstream stream) {
    if (step->kernel < 0) return gpu_copy(cuda, step->arguments[0], step->arguments[1], step->dims, step->count, stream);
    void* arguments[gpu_max_arguments];
    for (int i = 0; i < step->count; ++i) arguments[i] = (void*)(size_t)(const void*)&step->arguments[i];
    const gpu_kernel* k = &kernels[step->kernel];
    return cuda->launch(k->function, k->grid[0], k->grid[1], k->grid[2], k->block[0], k->block[1], k->block[2], 0, stream, arguments, NULL);
}

static inline CUresult gpu_enqueue_all(const loopegg_cuda* cuda, const gpu_kernel* kernels, const gpu_step* steps, int count, CUstream stream) {
    for (int i = 0; i < count; ++i) {
        const CUresult r = gpu_enqueue(cuda, kernels, &steps[i], stream);
        if (r != CUDA_SUCCESS) return r;
    }
    return CUDA_SUCCESS;
}

/* All steps as one graph, which one call launches. */
static inline CUresult gpu_record(const loopegg_cuda* cuda, const gpu_kernel* kernels, const gpu_step* steps, int count, CUstream stream, CUgraphExec* ready) {
    CUgraph graph = NULL;
    CUresult r = cuda->capture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    if (r != CUDA_SUCCESS) return r;
    const CUresult enqueued = gpu_enqueue_all(cuda, kernels, steps, count, stream);
    r = cuda->end_capture(stream, &graph); /* also after a failure: the stream is captured until then */
    if (enqueued != CUDA_SUCCESS || r != CUDA_SUCCESS) return enqueued != CUDA_SUCCESS ? enqueued : r;
    r = cuda->instantiate ? cuda->instantiate(ready, graph, 0) : cuda->instantiate_before(ready, graph, NULL, NULL, 0);
    cuda->end_graph(graph);
    return r;
}
