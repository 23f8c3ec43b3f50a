/* Runs a compiled network: weights that all contexts read, and a context with its own memory and threads for each caller.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#define _GNU_SOURCE
#include "loopegg_network.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "loopegg_pace.h"
#include "loopegg_weights.h"

enum { max_operator_inputs = 64 };

struct loopegg_network {
    const loopegg_tables* tables;
    float* weights;
    _Atomic int users; /* contexts, and one until it is closed */
};

struct loopegg_context {
    const loopegg_tables* tables;
    loopegg_network* network;
    loopegg_team* team;
    loopegg_pace pace;
    float* arena;
    float** spaces;            /* what a call uses: the arena, the weights, inputs, outputs */
    int cursor, until, failed; /* steps of one region that are still to be called */
};

/* Large pages, where the system gives them: weights are read once in a run, and with small pages much of that is address translation. */
static float* floats(int64_t count) {
    const size_t page = (size_t)2 << 20, bytes = (size_t)count * sizeof(float) + 64, align = bytes < page ? 64 : page;
    const size_t all = (bytes + align - 1) / align * align;
    float* memory = aligned_alloc(align, all);
#ifdef MADV_HUGEPAGE
    if (memory && align == page) madvise(memory, all, MADV_HUGEPAGE);
#endif
    return memory;
}

static void release(loopegg_network* n) {
    if (!n || atomic_fetch_sub_explicit(&n->users, 1, memory_order_acq_rel) > 1) return;
    free(n->weights);
    free(n);
}

loopegg_network* loopeggrt_network_open(const loopegg_tables* tables, const char* weights_file) {
    if (loopeggrt_missing_units(tables->units)) return NULL;
    loopegg_network* n = calloc(1, sizeof *n);
    if (!n) return NULL;
    n->tables = tables, n->weights = floats(tables->weight_floats);
    atomic_init(&n->users, 1);
    if (n->weights && loopeggrt_read_weights(weights_file, n->weights, tables->weight_floats, tables->fingerprint)) return n;
    release(n);
    return NULL;
}
void loopeggrt_network_close(loopegg_network* n) { release(n); }

loopegg_context* loopeggrt_context_create(const loopegg_tables* tables, loopegg_network* network, int threads) {
    if (!network || network->tables != tables) return NULL;
    loopegg_context* c = calloc(1, sizeof *c);
    if (!c) return NULL;
    atomic_fetch_add_explicit(&network->users, 1, memory_order_relaxed);
    c->tables = tables, c->network = network;
    c->team = loopeggrt_team_create(threads);
    c->arena = floats(tables->arena_floats);
    c->spaces = calloc((size_t)(2 + tables->inputs + tables->outputs), sizeof *c->spaces);
    if (!c->team || !c->arena || !c->spaces || loopeggrt_pace_start(&c->pace, loopeggrt_team_size(c->team), tables->steps)) {
        loopeggrt_context_destroy(c);
        return NULL;
    }
    memset(c->arena, 0, (size_t)tables->arena_floats * sizeof(float));
    return c;
}

void loopeggrt_context_destroy(loopegg_context* c) {
    if (!c) return;
    loopeggrt_team_destroy(c->team);
    loopeggrt_pace_end(&c->pace);
    release(c->network);
    free(c->arena);
    free(c->spaces);
    free(c);
}

int loopeggrt_context_threads(const loopegg_context* c) { return loopeggrt_team_size(c->team); }

static void copy(float* to, const float* from, const loopegg_dimension* d, int rank) {
    if (rank == 1 && d->to == 1 && d->from == 1) {
        memcpy(to, from, (size_t)d->extent * sizeof(float));
        return;
    }
    for (int64_t i = 0; i < d->extent; ++i) {
        if (rank == 1)
            to[i * d->to] = from[i * d->from];
        else
            copy(to + i * d->to, from + i * d->from, d + 1, rank - 1);
    }
}

/* Whether kernels may use the caller's memory as it is: it begins at a multiple of 64 bytes, and 64 bytes more are in its last page, because kernels read
   whole vectors. */
static int usable(const float* values, int64_t count) {
    const uintptr_t begin = (uintptr_t)values, last = begin + (uintptr_t)count * sizeof(float) - 1;
    return begin % 64 == 0 && 4095 - last % 4096 >= 64;
}

static int apart(const float* a, int64_t count_a, const float* b, int64_t count_b) {
    const uintptr_t begin_a = (uintptr_t)a, begin_b = (uintptr_t)b;
    return begin_a + (uintptr_t)count_a * sizeof(float) <= begin_b || begin_b + (uintptr_t)count_b * sizeof(float) <= begin_a;
}

/* Inputs and outputs are in the caller's memory where that is usable, and copied into and out of the arena elsewhere. */
static void find_spaces(loopegg_context* c, const float* const* inputs, float* const* outputs) {
    const loopegg_tables* t = c->tables;
    c->spaces[0] = c->arena;
    c->spaces[1] = c->network->weights;
    for (int i = 0; i < t->inputs; ++i) {
        int in_place = usable(inputs[i], t->input_sizes[i]);
        for (int o = 0; o < t->outputs; ++o) in_place = in_place && apart(inputs[i], t->input_sizes[i], outputs[o], t->output_sizes[o]);
        c->spaces[2 + i] =
            in_place ? (float*)(uintptr_t)inputs[i] : memcpy(c->arena + t->input_offsets[i], inputs[i], (size_t)t->input_sizes[i] * sizeof(float));
    }
    for (int o = 0; o < t->outputs; ++o) {
        int in_place = usable(outputs[o], t->output_sizes[o]);
        for (int other = 0; other < t->outputs; ++other)
            in_place = in_place && (other == o || apart(outputs[o], t->output_sizes[o], outputs[other], t->output_sizes[other]));
        c->spaces[2 + t->inputs + o] = in_place ? outputs[o] : c->arena + t->output_offsets[o];
    }
}

static float* at(const loopegg_context* c, loopegg_operand o) { return c->spaces[o.space] + o.offset; }

static int run_operator(const loopegg_context* c, const loopegg_step* s) {
    const loopegg_operand* o = &c->tables->operands[s->first];
    const loopegg_operator* p = &c->tables->operators[s->count];
    const float* values[max_operator_inputs];
    if (p->inputs > max_operator_inputs) return -1;
    for (int i = 0; i < p->inputs; ++i) values[i] = at(c, o[1 + i]);
    return c->tables->run_operator(p->node, p->output, p->inputs, values, &c->tables->operator_dims[p->first_dim], at(c, o[0]), (long)p->count) ? -1 : 0;
}

static int run_step(const loopegg_context* c, const loopegg_step* s) {
    const loopegg_operand* o = &c->tables->operands[s->first];
    if (s->kernel == -2) return run_operator(c, s);
    if (s->kernel < 0) {
        copy(at(c, o[0]), at(c, o[1]), &c->tables->dimensions[s->first_dim], s->count);
        return 0;
    }
    loopegg_tensor tensors[c->tables->max_operands];
    loopegg_argument arguments[c->tables->max_operands];
    for (int i = 0; i < s->count; ++i) {
        tensors[i].data = at(c, o[i]);
        arguments[i].type = 7;
        arguments[i].pad = 0;
        arguments[i].tensor = &tensors[i];
    }
    loopeggrt_team_turns(c->team, s->turns);
    return c->tables->kernels[s->kernel](NULL, arguments, s->count, NULL) ? -1 : 0;
}

/* Calls the rest of a region's steps. A step whose kernel has a parallel loop comes back here from inside that loop's launch. */
static int run_rest(void* context) {
    loopegg_context* c = context;
    while (c->cursor < c->until) {
        const loopegg_step* s = &c->tables->step[c->cursor++];
        loopeggrt_team_join(c->team, c->cursor < c->until ? run_rest : NULL, c);
        if (run_step(c, s)) c->failed = 1;
    }
    return c->failed ? -1 : 0;
}

static int run_region(loopegg_context* c, int first, int count, int threads) {
    loopeggrt_team_use(c->team, threads);
    c->cursor = first, c->until = first + count, c->failed = 0;
    if (threads > 1) return run_rest(c);
    for (int s = first; s < c->until; ++s)
        if (run_step(c, &c->tables->step[s])) return -1;
    return 0;
}

/* A step that is timed runs by itself. */
static int run_steps(loopegg_context* c, double* ms) {
    const loopegg_tables* t = c->tables;
    for (int s = 0, count = 1; s < t->steps; s += count) {
        int timed = 0;
        const int threads = loopeggrt_pace_threads(&c->pace, s, &timed);
        count = ms ? 1 : t->step[s].together;
        const int64_t began = ms || timed ? loopeggrt_now_ns() : 0;
        if (run_region(c, s, count, threads)) return -1;
        const int64_t took = ms || timed ? loopeggrt_now_ns() - began : 0;
        if (timed) loopeggrt_pace_took(&c->pace, s, took);
        if (ms) ms[s] = 1e-6 * (double)took;
    }
    return 0;
}

int loopeggrt_context_run(loopegg_context* c, const float* const* inputs, float* const* outputs, double* ms) {
    const loopegg_tables* t = c->tables;
    if (!loopeggrt_team_enter(c->team)) return 1;
    loopeggrt_pace_run_begins(&c->pace);
    find_spaces(c, inputs, outputs);
    const int failed = run_steps(c, ms);
    for (int i = 0; !failed && i < t->outputs; ++i) {
        const float* made = at(c, t->output_places[i]);
        if (made != outputs[i]) memcpy(outputs[i], made, (size_t)t->output_sizes[i] * sizeof(float));
    }
    loopeggrt_pace_run_ends(&c->pace);
    loopeggrt_team_leave(c->team);
    return failed;
}
