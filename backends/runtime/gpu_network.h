/* The entry points of a network on a GPU (network.h). network.c has the tables above: weights are uploaded once, every context plans its own buffers, and
 * the network is one graph.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "gpu_program.h"
#include "loopegg_weights.h"

struct loopegg_network {
    loopegg_cuda cuda;
    CUdevice device;
    CUcontext device_context;
    CUdeviceptr weights;
    CUmodule modules[kernel_count];
    gpu_kernel kernels[kernel_count];
    int retained;
    _Atomic int users; /* contexts, and one until it is closed */
};

struct loopegg_context {
    loopegg_network* network;
    CUstream stream;
    CUdeviceptr arena;
    CUdeviceptr arguments[operand_count];
    gpu_step steps[step_count];
    CUgraphExec ready;
};

static _Thread_local char why_not[300];

const char* LOOPEGG_NAME(error)(void) { return why_not; }

static int failed(const loopegg_cuda* cuda, CUresult r, const char* doing) {
    const char* name = NULL;
    if (r == CUDA_SUCCESS) return 0;
    cuda->error_name(r, &name);
    snprintf(why_not, sizeof why_not, "%s: %s", doing, name ? name : "unknown");
    return -1;
}

static int enter(const loopegg_network* n) { return failed(&n->cuda, n->cuda.push(n->device_context), "using the device"); }
static void leave(const loopegg_network* n) {
    CUcontext before;
    n->cuda.pop(&before);
}

static CUdeviceptr at(const loopegg_context* c, operand o) { return (o.constant ? c->network->weights : c->arena) + (CUdeviceptr)o.offset * sizeof(float); }

static int allocate_floats(const loopegg_network* n, CUdeviceptr* memory, long count) {
    return failed(&n->cuda, n->cuda.allocate(memory, (size_t)count * sizeof(float) + 256), "allocating");
}

static int load_kernels(loopegg_network* n) {
    for (int k = 0; k < kernel_count; ++k) {
        if (failed(&n->cuda, n->cuda.load(&n->modules[k], kernels[k].image), "loading a kernel")) return -1;
        if (failed(&n->cuda, n->cuda.function(&n->kernels[k].function, n->modules[k], kernels[k].symbol), "finding a kernel")) return -1;
        for (int d = 0; d < 3; ++d) n->kernels[k].grid[d] = kernels[k].grid[d], n->kernels[k].block[d] = kernels[k].block[d];
    }
    return 0;
}

static int upload_weights(loopegg_network* n, const float* values) {
    if (allocate_floats(n, &n->weights, weight_floats)) return -1;
    return weight_floats == 0 ? 0 : failed(&n->cuda, n->cuda.upload(n->weights, values, (size_t)weight_floats * sizeof(float)), "uploading weights");
}

static int open_device(loopegg_network* n) {
    if (loopegg_find_cuda(&n->cuda, why_not, sizeof why_not)) return -1;
    if (failed(&n->cuda, n->cuda.init(0), "starting the driver")) return -1;
    if (failed(&n->cuda, n->cuda.device(&n->device, 0), "finding a device")) return -1;
    if (failed(&n->cuda, n->cuda.retain(&n->device_context, n->device), "using the device")) return -1;
    n->retained = 1;
    return 0;
}

static void release_network(loopegg_network* n) {
    if (!n || atomic_fetch_sub(&n->users, 1) > 1) return;
    if (n->retained && enter(n) == 0) {
        if (n->weights) n->cuda.free_memory(n->weights);
        for (int k = 0; k < kernel_count; ++k)
            if (n->modules[k]) n->cuda.unload(n->modules[k]);
        leave(n);
        n->cuda.release(n->device);
    }
    free(n);
}

static int load_network(loopegg_network* n, const float* values) {
    if (open_device(n) || enter(n)) return -1;
    const int r = load_kernels(n) || upload_weights(n, values);
    leave(n);
    return r ? -1 : 0;
}

loopegg_network* LOOPEGG_NAME(open)(const char* weights_file) {
    loopegg_network* n = calloc(1, sizeof *n);
    float* values = malloc((size_t)weight_floats * sizeof(float) + 1);
    int ok = n && values;
    if (n) atomic_init(&n->users, 1);
    if (!ok) snprintf(why_not, sizeof why_not, "there is not enough memory");
    if (ok && !loopeggrt_read_weights(weights_file, values, weight_floats, weight_fingerprint)) {
        snprintf(why_not, sizeof why_not, "the file of weights cannot be read, or is not of this network");
        ok = 0;
    }
    ok = ok && load_network(n, values) == 0;
    free(values);
    if (ok) return n;
    release_network(n);
    return NULL;
}
void LOOPEGG_NAME(close)(loopegg_network* n) { release_network(n); }

static int record(loopegg_context* c) {
    const loopegg_network* n = c->network;
    for (int i = 0; i < operand_count; ++i) c->arguments[i] = at(c, operands[i]);
    for (int s = 0; s < step_count; ++s) {
        const gpu_step step = {steps[s].kernel, steps[s].count, &c->arguments[steps[s].first], &dims[steps[s].first_dim]};
        c->steps[s] = step;
    }
    return failed(&n->cuda, gpu_record(&n->cuda, n->kernels, c->steps, step_count, c->stream, &c->ready), "recording the network");
}

static int prepare(loopegg_context* c) {
    const loopegg_network* n = c->network;
    if (enter(n)) return -1;
    int r = failed(&n->cuda, n->cuda.stream(&c->stream, CU_STREAM_NON_BLOCKING), "making a stream");
    if (!r) r = allocate_floats(n, &c->arena, arena_floats);
    if (!r) r = failed(&n->cuda, n->cuda.fill(c->arena, 0, (size_t)arena_floats * sizeof(float)), "clearing");
    if (!r) r = record(c);
    leave(n);
    return r;
}

void LOOPEGG_NAME(destroy)(loopegg_context* c) {
    if (!c) return;
    loopegg_network* n = c->network;
    if (enter(n) == 0) {
        if (c->stream) n->cuda.wait(c->stream);
        if (c->ready) n->cuda.end_ready(c->ready);
        if (c->stream) n->cuda.end_stream(c->stream);
        if (c->arena) n->cuda.free_memory(c->arena);
        leave(n);
    }
    free(c);
    release_network(n);
}

loopegg_context* LOOPEGG_NAME(create)(loopegg_network* network, int threads) {
    (void)threads;
    loopegg_context* c = network ? calloc(1, sizeof *c) : NULL;
    if (!c) return NULL;
    atomic_fetch_add(&network->users, 1);
    c->network = network;
    if (prepare(c) == 0) return c;
    LOOPEGG_NAME(destroy)(c);
    return NULL;
}
int LOOPEGG_NAME(threads)(const loopegg_context* c) {
    (void)c;
    return 1;
}

unsigned long long LOOPEGG_NAME(input_address)(const loopegg_context* c, int index) { return c->arena + (CUdeviceptr)input_offsets[index] * sizeof(float); }
unsigned long long LOOPEGG_NAME(output_address)(const loopegg_context* c, int index) { return at(c, output_places[index]); }

int LOOPEGG_NAME(launch)(loopegg_context* c, void* stream) {
    const loopegg_network* n = c->network;
    if (enter(n)) return -1;
    int r = failed(&n->cuda, n->cuda.launch_graph(c->ready, stream ? (CUstream)stream : c->stream), "launching");
    if (!r && !stream) r = failed(&n->cuda, n->cuda.wait(c->stream), "running");
    leave(n);
    return r;
}

static int upload_inputs(const loopegg_context* c, const float* const* inputs) {
    const loopegg_network* n = c->network;
    for (int i = 0; i < input_count; ++i)
        if (failed(&n->cuda, n->cuda.upload_on(LOOPEGG_NAME(input_address)(c, i), inputs[i], (size_t)input_sizes[i] * sizeof(float), c->stream), "uploading"))
            return -1;
    return 0;
}

static int download_outputs(const loopegg_context* c, float* const* outputs) {
    const loopegg_network* n = c->network;
    for (int i = 0; i < output_count; ++i)
        if (failed(&n->cuda, n->cuda.download_on(outputs[i], LOOPEGG_NAME(output_address)(c, i), (size_t)output_sizes[i] * sizeof(float), c->stream),
                   "downloading"))
            return -1;
    return failed(&n->cuda, n->cuda.wait(c->stream), "running");
}

/* Step by step, each between two events: what a step takes by itself, launched alone. */
static int run_timed(const loopegg_context* c, double* ms) {
    const loopegg_network* n = c->network;
    CUevent events[step_count + 1] = {0};
    int r = 0;
    for (int s = 0; !r && s <= step_count; ++s) {
        r = failed(&n->cuda, n->cuda.event(&events[s], 0), "making an event");
        if (!r) r = failed(&n->cuda, n->cuda.note(events[s], c->stream), "timing");
        if (!r && s < step_count) r = failed(&n->cuda, gpu_enqueue(&n->cuda, n->kernels, &c->steps[s], c->stream), "launching");
    }
    if (!r) r = failed(&n->cuda, n->cuda.wait(c->stream), "running");
    for (int s = 0; !r && s < step_count; ++s) {
        float took = 0;
        r = failed(&n->cuda, n->cuda.elapsed(&took, events[s], events[s + 1]), "timing");
        ms[s] = took;
    }
    for (int s = 0; s <= step_count; ++s)
        if (events[s]) n->cuda.end_event(events[s]);
    return r;
}

/* One graph, or step by step where the steps are timed. */
static int run(loopegg_context* c, const float* const* inputs, float* const* outputs, double* ms) {
    const loopegg_network* n = c->network;
    if (enter(n)) return -1;
    int r = upload_inputs(c, inputs);
    if (!r) r = ms ? run_timed(c, ms) : failed(&n->cuda, n->cuda.launch_graph(c->ready, c->stream), "launching");
    if (!r) r = download_outputs(c, outputs);
    leave(n);
    return r;
}

int LOOPEGG_NAME(run)(loopegg_context* c, const float* const* inputs, float* const* outputs) { return run(c, inputs, outputs, NULL); }
int LOOPEGG_NAME(run_steps)(loopegg_context* c, const float* const* inputs, float* const* outputs, double* ms) { return run(c, inputs, outputs, ms); }

int LOOPEGG_NAME(abi)(void) { return LOOPEGG_ABI; }
int LOOPEGG_NAME(steps)(void) { return step_count; }
int LOOPEGG_NAME(inputs)(void) { return input_count; }
int LOOPEGG_NAME(outputs)(void) { return output_count; }
long LOOPEGG_NAME(input_size)(int index) { return input_sizes[index]; }
long LOOPEGG_NAME(output_size)(int index) { return output_sizes[index]; }
