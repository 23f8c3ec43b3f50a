/* What compiled kernels need when they run: a team of threads. Plain C, linked into every artifact; no TVM at run time. */
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How many threads kernels use from the next launch on; 0 means as many as the machine has cores (or LOOPEGG_THREADS). */
void loopegg_set_threads(int count);
int loopegg_threads(void);

/* The calling convention of a kernel: an array of these, one per buffer. Buffers start at a multiple of 64 bytes. */
typedef struct {
    int32_t type; /* 7: a pointer to a tensor */
    int32_t pad;
    const void* tensor; /* its first word is the address of the data */
} loopegg_argument;
typedef struct {
    void* data;
    int64_t rest[5]; /* the other fields of a DLTensor, which the kernels do not read */
} loopegg_tensor;
typedef int (*loopegg_kernel)(void* self, const loopegg_argument* arguments, int32_t count, void* result);

#ifdef __cplusplus
}
#endif
