/* What compiled kernels need when they run: a team of threads, and scratch memory. Plain C, linked into every compiled network; no TVM at run time.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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

/* How many threads a team has unless its maker says otherwise: LOOPEGG_THREADS, or the processors that this process may use (its affinity mask and the
   quotas of its control groups). */
int loopeggrt_default_threads(void);

/* The whole processors that the quotas of control groups allow, or 0 where there is no quota. `groups` is a file like /proc/self/cgroup, and `root` the folder
   where the hierarchies are mounted (/sys/fs/cgroup). */
int loopeggrt_quota(const char* groups, const char* root);

/* Matrix units, one bit each, that kernels may need. Answers those that this process cannot use. Ask before the first kernel that needs one is called: on
   Linux a process asks the system once for the registers of such a unit. */
enum {
    loopeggrt_amx_bf16 = 1,
    loopeggrt_amx_int8 = 2,
    loopeggrt_vnni = 4,
    loopeggrt_avx512_bf16 = 8,
    loopeggrt_dotprod = 16,
    loopeggrt_i8mm = 32,
    loopeggrt_arm_bf16 = 64
};
uint32_t loopeggrt_missing_units(uint32_t units);
const char* loopeggrt_units_in_words(uint32_t units);

/* A team: the thread that calls kernels, and helpers that take parts of their parallel loops. Teams know nothing of each other. */
typedef struct loopegg_team loopegg_team;
loopegg_team* loopeggrt_team_create(int threads); /* 0: loopeggrt_default_threads(); NULL: no memory */
void loopeggrt_team_destroy(loopegg_team* team);  /* NULL is allowed */
int loopeggrt_team_size(const loopegg_team* team);

/* Between enter and leave the loops of kernels that this thread calls run on the team. Without a team they run on this thread alone. enter answers 0 where
   another call is inside. */
int loopeggrt_team_enter(loopegg_team* team);
void loopeggrt_team_leave(loopegg_team* team);

/* For the one who is inside. From the next loop on: how many threads take part, and how many turns each loop has, so that no part is empty and every thread
   gets as many. `turns` packs those of up to three loops in their order, the first into the lowest bits; after the last loop the first comes again. 0: not
   known. */
enum { loopegg_turn_bits = 20, loopegg_max_turns = (1 << loopegg_turn_bits) - 1, loopegg_max_turn_loops = 3 };
void loopeggrt_team_use(loopegg_team* team, int threads);
void loopeggrt_team_turns(loopegg_team* team, int64_t turns);

/* Work that needs nothing of the next loop and gives nothing to it: `more` is called before that loop runs, and the loops of the kernels that it calls run in
   one region with that loop. It answers 0 when all went well. The team forgets it when it has called it. */
typedef int (*loopegg_more)(void* data);
void loopeggrt_team_join(loopegg_team* team, loopegg_more more, void* data);
int loopeggrt_team_waits(const loopegg_team* team); /* 1 while a loop waits for what `more` brings */

#ifdef __cplusplus
}
#endif
