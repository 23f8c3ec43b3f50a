/* The entry points of a network on a GPU (network.h). network.c has the tables and the fingerprint above: weights are uploaded once, buffers are
 * planned, and the network is one graph. */
#pragma once
#include <stdint.h>

#include "gpu_program.h"

struct loopegg_network {
    loopegg_cuda cuda;
    CUdevice device;
    CUcontext context;
    CUstream stream;
    CUdeviceptr arena, weights;
    CUmodule modules[kernel_count];
    gpu_kernel kernels[kernel_count];
    CUdeviceptr arguments[operand_count];
    gpu_step steps[step_count];
    CUgraphExec ready;
    int retained;
};

static char why_not[300];

const char* loopegg_error(void) { return why_not; }

static int failed(const loopegg_cuda* cuda, CUresult r, const char* doing) {
    const char* name = NULL;
    if (r == CUDA_SUCCESS) return 0;
    cuda->error_name(r, &name);
    snprintf(why_not, sizeof why_not, "%s: %s", doing, name ? name : "unknown");
    return -1;
}

static CUdeviceptr at(const loopegg_network* n, operand o) { return (o.constant ? n->weights : n->arena) + (CUdeviceptr)o.offset * sizeof(float); }

static float* read_weights(const char* path) {
    FILE* file = fopen(path, "rb");
    float* values = malloc((size_t)weight_floats * sizeof(float) + 1);
    int ok = file && values && fread(values, sizeof(float), (size_t)weight_floats, file) == (size_t)weight_floats && fgetc(file) == EOF;
    ok = ok && fingerprint(values, weight_floats) == weight_fingerprint;
    if (file) fclose(file);
    if (ok) return values;
    snprintf(why_not, sizeof why_not, "the file of weights cannot be read, or is not of this network");
    free(values);
    return NULL;
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
    const size_t arena = (size_t)arena_floats * sizeof(float), weights = (size_t)weight_floats * sizeof(float);
    if (failed(&n->cuda, n->cuda.allocate(&n->arena, arena + 256), "allocating")) return -1;
    if (failed(&n->cuda, n->cuda.allocate(&n->weights, weights + 256), "allocating")) return -1;
    if (failed(&n->cuda, n->cuda.fill(n->arena, 0, arena), "clearing")) return -1;
    return weights == 0 ? 0 : failed(&n->cuda, n->cuda.upload(n->weights, values, weights), "uploading weights");
}

static int record(loopegg_network* n) {
    for (int i = 0; i < operand_count; ++i) n->arguments[i] = at(n, operands[i]);
    for (int s = 0; s < step_count; ++s) {
        const gpu_step step = {steps[s].kernel, steps[s].count, &n->arguments[steps[s].first], &dims[steps[s].first_dim]};
        n->steps[s] = step;
    }
    return failed(&n->cuda, gpu_record(&n->cuda, n->kernels, n->steps, step_count, n->stream, &n->ready), "recording the network");
}

static int open_device(loopegg_network* n) {
    if (loopegg_find_cuda(&n->cuda, why_not, sizeof why_not)) return -1;
    if (failed(&n->cuda, n->cuda.init(0), "starting the driver")) return -1;
    if (failed(&n->cuda, n->cuda.device(&n->device, 0), "finding a device")) return -1;
    if (failed(&n->cuda, n->cuda.retain(&n->context, n->device), "using the device")) return -1;
    n->retained = 1;
    if (failed(&n->cuda, n->cuda.push(n->context), "using the device")) return -1;
    return failed(&n->cuda, n->cuda.stream(&n->stream, CU_STREAM_NON_BLOCKING), "making a stream");
}

loopegg_network* loopegg_open(const char* weights_file) {
    CUcontext before;
    loopegg_network* n = calloc(1, sizeof *n);
    float* values = n ? read_weights(weights_file) : NULL;
    const int ok = values && open_device(n) == 0 && load_kernels(n) == 0 && upload_weights(n, values) == 0 && record(n) == 0;
    free(values);
    if (n && n->retained) n->cuda.pop(&before);
    if (!ok) return loopegg_close(n), NULL;
    return n;
}

void loopegg_close(loopegg_network* n) {
    CUcontext before;
    if (!n) return;
    if (n->retained && n->cuda.push(n->context) == CUDA_SUCCESS) {
        if (n->stream) n->cuda.wait(n->stream);
        if (n->ready) n->cuda.end_ready(n->ready);
        if (n->stream) n->cuda.end_stream(n->stream);
        if (n->arena) n->cuda.free_memory(n->arena);
        if (n->weights) n->cuda.free_memory(n->weights);
        for (int k = 0; k < kernel_count; ++k)
            if (n->modules[k]) n->cuda.unload(n->modules[k]);
        n->cuda.pop(&before);
        n->cuda.release(n->device);
    }
    free(n);
}

unsigned long long loopegg_input_address(const loopegg_network* n, int index) { return n->arena + (CUdeviceptr)input_offsets[index] * sizeof(float); }
unsigned long long loopegg_output_address(const loopegg_network* n, int index) { return at(n, output_places[index]); }

int loopegg_launch(loopegg_network* n, void* stream) {
    CUcontext before;
    if (failed(&n->cuda, n->cuda.push(n->context), "using the device")) return -1;
    int r = failed(&n->cuda, n->cuda.launch_graph(n->ready, stream ? (CUstream)stream : n->stream), "launching");
    if (!r && !stream) r = failed(&n->cuda, n->cuda.wait(n->stream), "running");
    n->cuda.pop(&before);
    return r;
}

static int upload_inputs(loopegg_network* n, const float* const* inputs) {
    for (int i = 0; i < input_count; ++i)
        if (failed(&n->cuda, n->cuda.upload_on(loopegg_input_address(n, i), inputs[i], (size_t)input_sizes[i] * sizeof(float), n->stream), "uploading"))
            return -1;
    return 0;
}

static int download_outputs(loopegg_network* n, float* const* outputs) {
    for (int i = 0; i < output_count; ++i)
        if (failed(&n->cuda, n->cuda.download_on(outputs[i], loopegg_output_address(n, i), (size_t)output_sizes[i] * sizeof(float), n->stream), "downloading"))
            return -1;
    return failed(&n->cuda, n->cuda.wait(n->stream), "running");
}

int loopegg_run(loopegg_network* n, const float* const* inputs, float* const* outputs) {
    CUcontext before;
    if (failed(&n->cuda, n->cuda.push(n->context), "using the device")) return -1;
    int r = upload_inputs(n, inputs);
    if (!r) r = failed(&n->cuda, n->cuda.launch_graph(n->ready, n->stream), "launching");
    if (!r) r = download_outputs(n, outputs);
    n->cuda.pop(&before);
    return r;
}

/* Step by step, each between two events: what a step takes by itself, launched alone. */
static int run_timed(loopegg_network* n, double* ms) {
    CUevent events[step_count + 1] = {0};
    int r = 0;
    for (int s = 0; !r && s <= step_count; ++s) {
        r = failed(&n->cuda, n->cuda.event(&events[s], 0), "making an event");
        if (!r) r = failed(&n->cuda, n->cuda.note(events[s], n->stream), "timing");
        if (!r && s < step_count) r = failed(&n->cuda, gpu_enqueue(&n->cuda, n->kernels, &n->steps[s], n->stream), "launching");
    }
    if (!r) r = failed(&n->cuda, n->cuda.wait(n->stream), "running");
    for (int s = 0; !r && s < step_count; ++s) {
        float took = 0;
        r = failed(&n->cuda, n->cuda.elapsed(&took, events[s], events[s + 1]), "timing");
        ms[s] = took;
    }
    for (int s = 0; s <= step_count; ++s)
        if (events[s]) n->cuda.end_event(events[s]);
    return r;
}

int loopegg_run_steps(loopegg_network* n, const float* const* inputs, float* const* outputs, double* ms) {
    CUcontext before;
    if (!ms) return loopegg_run(n, inputs, outputs);
    if (failed(&n->cuda, n->cuda.push(n->context), "using the device")) return -1;
    int r = upload_inputs(n, inputs);
    if (!r) r = run_timed(n, ms);
    if (!r) r = download_outputs(n, outputs);
    n->cuda.pop(&before);
    return r;
}

int loopegg_steps(void) { return step_count; }
int loopegg_inputs(void) { return input_count; }
int loopegg_outputs(void) { return output_count; }
long loopegg_input_size(int index) { return input_sizes[index]; }
long loopegg_output_size(int index) { return output_sizes[index]; }
void loopegg_set_threads(int count) { (void)count; }
