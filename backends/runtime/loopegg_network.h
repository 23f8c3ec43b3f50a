/* A compiled network as tables, and what runs it. network.c holds the tables of one network and gives these functions names with its prefix.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once
#include <stdint.h>

#include "loopegg_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t kernel;       /* -1: a copy; -2: an operator that runs as it stands */
    int32_t first, count; /* operands; of a copy after its two operands, its dimensions; of an operator, which one */
    int32_t first_dim;    /* of a copy */
    int32_t together;     /* of this step and those behind it, how many need nothing of each other */
    int64_t turns;        /* of the kernel's parallel loops (loopeggrt_team_turns) */
} loopegg_step;
typedef struct {
    int64_t space; /* 0: the arena, 1: the weights, then the inputs, then the outputs */
    int64_t offset;
} loopegg_operand;
typedef struct {
    int64_t extent, to, from;
} loopegg_dimension;
typedef struct {
    const char* node;
    int32_t output, inputs, first_dim;
    int64_t count;
} loopegg_operator;
/* Of networks that have such operators; src/graph/onnx/evaluate defines it. */
extern int loopegg_run_opaque(const char* node, int output, int inputs, const float* const* values, const long* dims, float* out, long count);

typedef struct {
    int32_t steps, inputs, outputs, max_operands;
    int64_t arena_floats, weight_floats;
    uint64_t fingerprint; /* of the weights */
    const loopegg_kernel* kernels;
    const loopegg_step* step;
    const loopegg_operand* operands;
    const loopegg_dimension* dimensions;
    const loopegg_operator* operators;
    const long* operator_dims;
    __typeof__(&loopegg_run_opaque) run_operator;  /* or null */
    const int64_t *input_sizes, *output_sizes;     /* floats */
    const int64_t *input_offsets, *output_offsets; /* in the arena, where the caller's memory cannot be used */
    const loopegg_operand* output_places;
    uint32_t units; /* matrix units that kernels need */
} loopegg_tables;

typedef struct loopegg_network loopegg_network;
typedef struct loopegg_context loopegg_context;

loopegg_network* loopeggrt_network_open(const loopegg_tables* tables, const char* weights_file);
void loopeggrt_network_close(loopegg_network* network);
loopegg_context* loopeggrt_context_create(const loopegg_tables* tables, loopegg_network* network, int threads);
void loopeggrt_context_destroy(loopegg_context* context);
int loopeggrt_context_threads(const loopegg_context* context);
/* 0: done; -1: a kernel failed; 1: another call is inside this context. ms may be NULL; otherwise every step runs by itself and is timed. */
int loopeggrt_context_run(loopegg_context* context, const float* const* inputs, float* const* outputs, double* ms);

/* The network of this library, and what network.h offers of it (loopegg_entry.c). */
enum { loopeggrt_abi_version = 2 };
extern const loopegg_tables loopeggrt_tables;
int loopeggrt_abi(void);
const char* loopeggrt_lacks(void); /* what kernels need and this machine does not offer, in words; "" where nothing is missing */
loopegg_network* loopeggrt_open(const char* weights_file);
void loopeggrt_close(loopegg_network* network);
loopegg_context* loopeggrt_create(loopegg_network* network, int threads);
void loopeggrt_destroy(loopegg_context* context);
int loopeggrt_threads(const loopegg_context* context);
int loopeggrt_run(loopegg_context* context, const float* const* inputs, float* const* outputs);
int loopeggrt_run_steps(loopegg_context* context, const float* const* inputs, float* const* outputs, double* ms);
int loopeggrt_steps(void);
int loopeggrt_inputs(void);
int loopeggrt_outputs(void);
long loopeggrt_input_size(int index);
long loopeggrt_output_size(int index);

#ifdef __cplusplus
}
#endif
