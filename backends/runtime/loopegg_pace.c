/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "loopegg_pace.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A part is tried with half as many threads as long as that is faster. A part that takes longer than `long_ns` cannot gain from fewer. */
enum { tries_each = 4, long_ns = 200000 };
/* One run of `look_every` is compared with the processor time of its caller, who never sleeps in a run: what is missing, others had. */
enum { look_every = 8, first_hold_ns = 2000000, longest_hold_ns = 256000000 };
static const double own_share = 0.7;

static int64_t read_clock(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
int64_t loopeggrt_now_ns(void) { return read_clock(CLOCK_MONOTONIC); }

static void explore(loopegg_pace* pace) {
    for (int p = 0; p < pace->parts_count; ++p) pace->parts[p] = (loopegg_part_pace){pace->most, pace->most > 1 ? pace->most : 0, 0, 0, 0};
}

int loopeggrt_pace_start(loopegg_pace* pace, int threads, int parts) {
    memset(pace, 0, sizeof *pace);
    pace->parts = malloc((size_t)parts * sizeof *pace->parts + 1);
    if (!pace->parts) return -1;
    pace->most = pace->limit = threads;
    pace->hold_ns = first_hold_ns;
    pace->parts_count = parts;
    explore(pace);
    return 0;
}
void loopeggrt_pace_end(loopegg_pace* pace) { free(pace->parts); }

void loopeggrt_pace_run_begins(loopegg_pace* pace) {
    pace->began = 0;
    if (pace->most == 1 || ++pace->runs % look_every) return;
    pace->began = loopeggrt_now_ns();
    pace->began_cpu = read_clock(CLOCK_THREAD_CPUTIME_ID);
}

void loopeggrt_pace_run_ends(loopegg_pace* pace) {
    if (!pace->began) return;
    const int64_t now = loopeggrt_now_ns(), took = now - pace->began, own = read_clock(CLOCK_THREAD_CPUTIME_ID) - pace->began_cpu;
    if ((double)own < own_share * (double)took) { /* soon after more threads were tried again: wait longer until the next time */
        if (pace->limit < pace->most || now < pace->hold_until + pace->hold_ns) pace->hold_ns *= 2;
        if (pace->hold_ns > longest_hold_ns) pace->hold_ns = longest_hold_ns;
        pace->limit = pace->limit > 1 ? pace->limit / 2 : 1;
        pace->hold_until = now + pace->hold_ns;
    } else if (now > pace->hold_until) {
        if (pace->limit == pace->most) {
            pace->hold_ns = first_hold_ns;
            return;
        }
        pace->limit = 2 * pace->limit < pace->most ? 2 * pace->limit : pace->most;
        pace->hold_until = now + pace->hold_ns;
        if (pace->limit == pace->most) explore(pace);
    }
}

int loopeggrt_pace_threads(loopegg_pace* pace, int part, int* timed) {
    const loopegg_part_pace* p = &pace->parts[part];
    *timed = p->trial && pace->limit == pace->most;
    const int threads = *timed ? p->trial : p->best;
    return threads < pace->limit ? threads : pace->limit;
}

void loopeggrt_pace_took(loopegg_pace* pace, int part, int64_t ns) {
    loopegg_part_pace* p = &pace->parts[part];
    if (!p->tries || ns < p->trial_ns) p->trial_ns = ns;
    if (++p->tries < tries_each) return;
    const int first = p->trial == pace->most;
    if (first || p->trial_ns < p->best_ns - p->best_ns / 32) {
        p->best = p->trial, p->best_ns = p->trial_ns, p->tries = 0;
        p->trial = p->best == 1 || p->best_ns > long_ns ? 0 : p->best / 2;
    } else {
        p->trial = 0;
    }
}
