/* How many threads each part of a network uses: found by trying fewer in its first runs, first for each part and then for all, and reduced while other work
 * takes the processors.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once
#include <stdint.h>

/* The search for the number of threads of one part (a step, or steps that run in one region), or of a whole run. */
typedef struct {
    int32_t best, trial;   /* threads; trial 0: nothing more is tried */
    int32_t tries, misses; /* of what is tried now; numbers since the best one that were slower */
    int64_t best_ns, trial_ns;
} loopegg_threads_search;

typedef struct {
    int32_t most, limit; /* threads of the team; as many as are used while the processors are contended */
    int32_t runs;
    int64_t hold_ns, hold_until;
    int64_t began, began_cpu;              /* of the run that is being looked at; 0: none is */
    int32_t parts_count, searching, timed; /* whether parts still tried numbers in the run before, and do in this one */
    loopegg_threads_search* parts;
    loopegg_threads_search whole; /* the most that any part may use: parts that are fastest one by one disturb each other on too many processors */
} loopegg_pace;

int64_t loopeggrt_now_ns(void);

int loopeggrt_pace_start(loopegg_pace* pace, int threads, int parts); /* 0: done; -1: no memory */
void loopeggrt_pace_end(loopegg_pace* pace);

void loopeggrt_pace_run_begins(loopegg_pace* pace);
void loopeggrt_pace_run_ends(loopegg_pace* pace); /* reads the clocks, and says with the next function what the run took */
/* A run that ended at `now` and took `all` nanoseconds, of which its caller had a processor for `own`. */
void loopeggrt_pace_run_took(loopegg_pace* pace, int64_t now, int64_t all, int64_t own);

/* The threads for a part in this run. Where *timed is not 0, the caller measures the part and says how long it took. */
int loopeggrt_pace_threads(loopegg_pace* pace, int part, int* timed);
void loopeggrt_pace_took(loopegg_pace* pace, int part, int64_t ns);
