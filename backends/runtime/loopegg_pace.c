/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "loopegg_pace.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Half as many threads are tried, and half of these, until `max_misses` in a row were slower than the best, or one was slower by far. */
enum { tries_each = 4, max_misses = 2 };
static const double by_far = 1.5;
/* One run of `look_every` is compared with the processor time of its caller, who never sleeps in a run: what is missing, others had. */
enum { look_every = 8, first_hold_ns = 2000000, longest_hold_ns = 256000000 };
static const double own_share = 0.7;

static int64_t read_clock(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
int64_t loopeggrt_now_ns(void) { return read_clock(CLOCK_MONOTONIC); }

static loopegg_threads_search search_from(int32_t most) { return (loopegg_threads_search){most, most > 1 ? most : 0, 0, 0, 0, 0}; }

static void explore(loopegg_pace* pace) {
    for (int p = 0; p < pace->parts_count; ++p) pace->parts[p] = search_from(pace->most);
    pace->searching = pace->timed = 1;
    pace->whole = search_from(pace->most);
}

/* Of two numbers that are equally fast the lower one is better: it leaves processors to others. */
static void took(loopegg_threads_search* s, int32_t most, int64_t ns) {
    if (!s->tries || ns < s->trial_ns) s->trial_ns = ns;
    const int first = s->trial == most, lost = !first && (double)ns > by_far * (double)s->best_ns;
    if (++s->tries < tries_each && !lost) return;
    if (first || s->trial_ns <= s->best_ns)
        s->best = s->trial, s->best_ns = s->trial_ns, s->misses = 0;
    else
        ++s->misses;
    s->tries = 0;
    s->trial = lost || s->misses == max_misses ? 0 : s->trial / 2;
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

/* Whole runs are tried with fewer threads when every part has found its own number. */
static int tries_runs(const loopegg_pace* pace) { return pace->whole.trial && !pace->searching && pace->limit == pace->most; }

void loopeggrt_pace_run_begins(loopegg_pace* pace) {
    pace->began = 0, pace->searching = pace->timed, pace->timed = 0;
    const int looks = ++pace->runs % look_every == 0;
    if (pace->most == 1 || (!looks && !tries_runs(pace))) return;
    pace->began = loopeggrt_now_ns();
    pace->began_cpu = read_clock(CLOCK_THREAD_CPUTIME_ID);
}

void loopeggrt_pace_run_ends(loopegg_pace* pace) {
    if (!pace->began) return;
    const int64_t now = loopeggrt_now_ns();
    loopeggrt_pace_run_took(pace, now, now - pace->began, read_clock(CLOCK_THREAD_CPUTIME_ID) - pace->began_cpu);
}

void loopeggrt_pace_run_took(loopegg_pace* pace, int64_t now, int64_t all, int64_t own) {
    if (tries_runs(pace)) took(&pace->whole, pace->most, all);
    if (pace->most == 1 || pace->runs % look_every) return;
    if ((double)own < own_share * (double)all) { /* soon after more threads were tried again: wait longer until the next time */
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

static int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }

int loopeggrt_pace_threads(loopegg_pace* pace, int part, int* timed) {
    const loopegg_threads_search* p = &pace->parts[part];
    *timed = p->trial && pace->limit == pace->most;
    if (*timed) return pace->timed = 1, p->trial;
    const int32_t whole = !pace->searching && pace->whole.trial ? pace->whole.trial : pace->whole.best;
    return least(least(p->best, whole), pace->limit);
}

void loopeggrt_pace_took(loopegg_pace* pace, int part, int64_t ns) { took(&pace->parts[part], pace->most, ns); }
