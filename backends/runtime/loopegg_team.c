/* Teams of threads for the parallel loops of kernels. The caller is member 0 and never waits for a helper that has not come: whoever is there takes the parts
 * of those who are not. So a team is right with any number of helpers running, also with none (after a fork, on a busy machine, in a container).
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "loopegg_runtime.h"

typedef struct {
    void* sync;
    int32_t count;
} group;
typedef int (*task)(int index, group* env, void* data);

enum { max_threads = 256, max_loops = 8, shares = 4, kept_blocks = 8, line = 64 };
/* How long a helper looks for the next loop before it sleeps, in a call and between calls, since it last had a part. Waking a team of 16 takes longer than most
   steps of a network, so a helper stays awake over the steps of a call that do without it. It never yields: one who yields on a busy machine comes back
   milliseconds later, and one who sleeps comes when it is called. */
enum { spin_ns = 1000000, linger_ns = 50000 };
/* How long the caller looks for parts that others finish before it lets others have its processor. */
enum { patience_ns = 100000 };
enum { refresh_every = 1 << 30 };

typedef struct member member;
struct member {
    /* The parts of each loop that are this member's by right and still free: round << 32 | end << 16 | next. Others may take them from the end. In a word of
       an earlier round nobody has taken a part yet. So the caller writes to no member's memory to begin a region. */
    _Alignas(line) _Atomic uint64_t free_parts[max_loops];
    _Alignas(line) _Atomic uint64_t done; /* round << 32 | parts that this member finished in that round */
    _Alignas(line) _Atomic uint32_t asleep;
    int index, inside; /* inside: runs a part of a loop */
    loopegg_team* team;
    pthread_t thread;
    struct {
        void* memory;
        uint64_t bytes;
        int used;
    } blocks[kept_blocks];
};

typedef struct {
    task run;
    void* data;
    int parts;
} loop;

struct loopegg_team {
    _Alignas(line) _Atomic uint32_t round; /* counts regions; a change calls the helpers */
    _Atomic int active, quit;              /* whether a call is inside; whether helpers end */
    /* The loops of the region: round << 32 | members << 16 | parts. One word says it all, so whoever is late never mixes two regions. */
    _Alignas(line) _Atomic uint64_t offers[max_loops];
    _Alignas(line) _Atomic int failed;
    _Atomic int busy;
    int size, started, waiting, use; /* use: members of the next region */
    int64_t turns, turns_left;       /* of the kernel's loops; of those that it has not come to yet */
    loop region[max_loops];
    loopegg_more more;
    void* more_data;
    pid_t process;
    cpu_set_t allowed;
    int caller; /* the processor that the caller was last seen on, plus one */
    member* members;
    member* outer; /* of the team that the calling thread was in before */
};

/* The member that this thread is while it runs kernels. It is set in a call and reset at its end. */
static _Thread_local member* here;

static void pause_briefly(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void futex_wait(_Atomic uint32_t* word, uint32_t value) { syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0); }
static void futex_wake(_Atomic uint32_t* word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0); }

static uint64_t share_begin(uint64_t offer, int index) { return (offer & 0xffff) * (uint64_t)index / (offer >> 16 & 0xffff); }

/* Takes one free part of a member in the offer's round: its own from the front, another's from the back. -1: there is none. */
static int take(member* from, int which, uint64_t offer, int own) {
    const uint32_t round = (uint32_t)(offer >> 32);
    const uint64_t whole = (uint64_t)round << 32 | share_begin(offer, from->index + 1) << 16 | share_begin(offer, from->index);
    _Atomic uint64_t* word = &from->free_parts[which];
    uint64_t seen = atomic_load_explicit(word, memory_order_relaxed);
    for (;;) {
        const int32_t behind = (int32_t)(round - (uint32_t)(seen >> 32));
        const uint64_t free = behind > 0 ? whole : seen;
        const unsigned next = free & 0xffff, end = free >> 16 & 0xffff;
        if (behind < 0 || next >= end) return -1;
        const uint64_t left = own ? free + 1 : free - (1u << 16);
        if (atomic_compare_exchange_weak_explicit(word, &seen, left, memory_order_acq_rel, memory_order_relaxed)) return (int)(own ? next : end - 1);
    }
}

/* What the region says stays true while a part that was taken from it is unfinished. */
static void run_part(member* me, int which, int part) {
    loopegg_team* team = me->team;
    const loop* l = &team->region[which];
    group env = {team, l->parts};
    me->inside = 1;
    if (l->run(part, &env, l->data)) atomic_store_explicit(&team->failed, 1, memory_order_relaxed);
    me->inside = 0;
}

/* Takes parts of the given round until none is left: first its own, then those of others, the next neighbour's first. */
static void work(member* me, uint32_t round, int use) {
    loopegg_team* team = me->team;
    uint32_t finished = 0, reported = 0;
    for (int step = 0; step < use; ++step) {
        const int whose = me->index + step < use ? me->index + step : me->index + step - use;
        for (int which = 0; which < max_loops; ++which) {
            const uint64_t offer = atomic_load_explicit(&team->offers[which], memory_order_relaxed);
            if ((uint32_t)(offer >> 32) != round) break;
            for (int part = 0; (part = take(&team->members[whose], which, offer, step == 0)) >= 0; ++finished) run_part(me, which, part);
        }
        if (finished != reported) atomic_store_explicit(&me->done, (uint64_t)round << 32 | finished, memory_order_release);
        reported = finished;
    }
}

/* Members wake each other as a tree, so that no member wakes all. */
static void wake_children(member* me, int use) {
    loopegg_team* team = me->team;
    for (int child = 2 * me->index + 1; child <= 2 * me->index + 2 && child < use; ++child) {
        _Atomic uint32_t* asleep = &team->members[child].asleep;
        if (atomic_load(asleep) && atomic_exchange(asleep, 0)) futex_wake(asleep);
    }
}

/* Waits until the round is another, first awake and then asleep. `idle_since` is when this helper last had a part. */
static uint32_t next_round(member* me, uint32_t seen, int64_t idle_since) {
    loopegg_team* team = me->team;
    uint32_t round;
    for (;;) {
        for (int i = 0; i < 16; ++i) {
            if ((round = atomic_load_explicit(&team->round, memory_order_acquire)) != seen) return round;
            pause_briefly();
        }
        if (now_ns() - idle_since > (atomic_load_explicit(&team->active, memory_order_relaxed) ? spin_ns : linger_ns)) break;
    }
    for (;;) {
        atomic_store(&me->asleep, 1);
        if ((round = atomic_load(&team->round)) != seen) break;
        futex_wait(&me->asleep, 1);
        if ((round = atomic_load(&team->round)) != seen) break;
    }
    atomic_store(&me->asleep, 0);
    return round;
}

static void* help(void* argument) {
    member* me = argument;
    here = me;
    int64_t idle_since = now_ns();
    for (uint32_t seen = 0;;) {
        seen = next_round(me, seen, idle_since);
        if (atomic_load_explicit(&me->team->quit, memory_order_acquire)) return NULL;
        const uint64_t offer = atomic_load_explicit(&me->team->offers[0], memory_order_relaxed);
        const int use = (int)(offer >> 16 & 0xffff);
        if ((uint32_t)(offer >> 32) != seen || me->index >= use) continue;
        wake_children(me, use);
        work(me, seen, use);
        idle_since = now_ns();
    }
}

/* A helper on its caller's processor waits behind its caller for a slice of time, which is longer than most networks take: helpers stay off it. */
static void keep_apart(loopegg_team* team) {
    const int now = sched_getcpu();
    if (now < 0 || team->caller == now + 1) return;
    team->caller = now + 1;
    cpu_set_t others = team->allowed;
    CPU_CLR(now, &others);
    if (CPU_COUNT(&others) < team->started) return;
    for (int i = 1; i <= team->started; ++i) pthread_setaffinity_np(team->members[i].thread, sizeof others, &others);
}

static void start_helpers(loopegg_team* team, int wanted) {
    while (team->started < wanted) {
        if (pthread_create(&team->members[team->started + 1].thread, NULL, help, &team->members[team->started + 1])) return;
        ++team->started;
        team->caller = 0;
    }
}

/* Before rounds are counted from 0 again, words of old rounds are brought up to date: one that was left alone for 2^31 rounds would look newer than it is. */
static void refresh(loopegg_team* team, uint32_t round) {
    for (int m = 0; m < team->size; ++m) {
        for (int which = 0; which < max_loops; ++which) atomic_store_explicit(&team->members[m].free_parts[which], (uint64_t)round << 32, memory_order_relaxed);
        atomic_store_explicit(&team->members[m].done, (uint64_t)round << 32, memory_order_relaxed);
    }
    for (int which = 0; which < max_loops; ++which) atomic_store_explicit(&team->offers[which], (uint64_t)round << 32 | 1u << 16, memory_order_relaxed);
}

/* Waits for the parts that others have taken. */
static void wait_for(const loopegg_team* team, uint32_t round, int use, uint32_t parts) {
    for (int64_t began = 0, tries = 1;; ++tries) {
        uint32_t finished = 0;
        for (int m = 0; m < use; ++m) {
            const uint64_t done = atomic_load_explicit(&team->members[m].done, memory_order_acquire);
            if ((uint32_t)(done >> 32) == round) finished += (uint32_t)done;
        }
        if (finished == parts) return;
        pause_briefly();
        if (tries % 64) continue;
        if (!began) began = now_ns();
        if (now_ns() - began > patience_ns) sched_yield();
    }
}

/* As few members as finish no later than all would: 28 parts on 16 members take two turns, and 14 members do that as well. Then every part is its own member's
   in each run, so that weights stay in that processor's cache, and nobody looks for parts that are not there. */
static int members_for(const loopegg_team* team, int loops) {
    const int here = team->started + 1 < team->use ? team->started + 1 : team->use;
    int parts = 0;
    for (int which = 0; which < loops; ++which) parts += team->region[which].parts;
    if (loops > 1) return parts < here ? parts : here; /* shares of several loops are not even anyway */
    const int turns = (parts + here - 1) / here;
    return (parts + turns - 1) / turns;
}

/* Offers the loops to the members, calls the helpers, works, and waits. */
static int run_region(loopegg_team* team) {
    member* me = &team->members[0];
    const int loops = team->waiting;
    team->waiting = 0;
    if (team->use > team->started + 1) start_helpers(team, team->use - 1);
    keep_apart(team);
    const int use = members_for(team, loops);
    const uint32_t round = atomic_load_explicit(&team->round, memory_order_relaxed) + 1;
    if (round % refresh_every == 0) refresh(team, round - 1);
    uint32_t parts = 0;
    for (int which = 0; which < loops; ++which) {
        const uint32_t all = (uint32_t)team->region[which].parts;
        atomic_store_explicit(&team->offers[which], (uint64_t)round << 32 | (uint64_t)use << 16 | all, memory_order_relaxed);
        parts += all;
    }
    atomic_store_explicit(&team->failed, 0, memory_order_relaxed);
    atomic_store(&team->round, round);
    wake_children(me, use);
    work(me, round, use);
    wait_for(team, round, use, parts);
    return atomic_load_explicit(&team->failed, memory_order_relaxed) ? -1 : 0;
}

static int64_t next_turns(loopegg_team* team) {
    if (!team->turns_left) team->turns_left = team->turns;
    const int64_t turns = team->turns_left & loopegg_max_turns;
    team->turns_left >>= loopegg_turn_bits;
    return turns;
}

/* As many parts as there are turns, or a few for each thread, so that one who is held up holds up little. */
static int parts_of(const loopegg_team* team, int64_t turns) {
    const int64_t most = (int64_t)shares * team->use;
    if (turns <= 0) return (int)most;
    const int64_t each = turns <= most ? 1 : turns / most;
    return (int)((turns + each - 1) / each);
}

/* What generated code calls for a parallel loop. */
static int launch(task run, void* data, int count) {
    (void)count;
    member* me = here;
    loopegg_team* team = me && me->index == 0 && !me->inside ? me->team : NULL;
    if (!team || (team->use == 1 && !team->waiting && !team->more)) {
        group env = {team, 1};
        return run(0, &env, data);
    }
    int failed = 0;
    team->region[team->waiting++] = (loop){run, data, parts_of(team, next_turns(team))};
    if (team->more && team->waiting < max_loops) {
        const loopegg_more more = team->more;
        const int64_t turns = team->turns, turns_left = team->turns_left;
        team->more = NULL;
        failed = more(team->more_data);
        team->turns = turns, team->turns_left = turns_left; /* this kernel may have more loops than the one that waits */
    }
    if (team->waiting && run_region(team)) failed = -1;
    return failed;
}

loopegg_team* loopeggrt_team_create(int threads) {
    if (threads <= 0) threads = loopeggrt_default_threads();
    if (threads > max_threads) threads = max_threads;
    loopegg_team* team = aligned_alloc(line, (sizeof *team + line - 1) / line * line);
    member* members = aligned_alloc(line, (size_t)threads * sizeof *members);
    if (!team || !members) return free(team), free(members), NULL;
    memset(team, 0, sizeof *team);
    memset(members, 0, (size_t)threads * sizeof *members);
    for (int m = 0; m < threads; ++m) members[m].index = m, members[m].team = team;
    team->members = members;
    team->size = threads;
    team->process = getpid();
    if (sched_getaffinity(0, sizeof team->allowed, &team->allowed) != 0) CPU_ZERO(&team->allowed);
    team->use = threads;
    return team;
}

void loopeggrt_team_destroy(loopegg_team* team) {
    if (!team) return;
    if (team->started && team->process == getpid()) { /* after a fork they are the parent's */
        atomic_store(&team->quit, 1);
        atomic_fetch_add(&team->round, 1);
        for (int i = 1; i <= team->started; ++i)
            if (atomic_exchange(&team->members[i].asleep, 0)) futex_wake(&team->members[i].asleep);
        for (int i = 1; i <= team->started; ++i) pthread_join(team->members[i].thread, NULL);
    }
    for (int m = 0; m < team->size; ++m)
        for (int b = 0; b < kept_blocks; ++b) free(team->members[m].blocks[b].memory);
    free(team->members);
    free(team);
}

int loopeggrt_team_size(const loopegg_team* team) { return team->size; }

/* A child that was forked has the memory of its parent's helpers and not their threads. */
static void forget_helpers(loopegg_team* team) {
    for (int i = 1; i <= team->started; ++i) atomic_store_explicit(&team->members[i].asleep, 0, memory_order_relaxed);
    team->started = 0;
    team->process = getpid();
}

int loopeggrt_team_enter(loopegg_team* team) {
    if (atomic_exchange_explicit(&team->busy, 1, memory_order_acquire)) return 0;
    if (team->started && team->process != getpid()) forget_helpers(team);
    team->outer = here;
    here = &team->members[0];
    atomic_store_explicit(&team->active, 1, memory_order_relaxed);
    return 1;
}
void loopeggrt_team_leave(loopegg_team* team) {
    here = team->outer;
    atomic_store_explicit(&team->active, 0, memory_order_relaxed);
    atomic_store_explicit(&team->busy, 0, memory_order_release);
}

void loopeggrt_team_use(loopegg_team* team, int threads) { team->use = threads < 1 ? 1 : threads > team->size ? team->size : threads; }
void loopeggrt_team_turns(loopegg_team* team, int64_t turns) { team->turns = team->turns_left = turns; }
void loopeggrt_team_join(loopegg_team* team, loopegg_more more, void* data) { team->more = more, team->more_data = data; }
int loopeggrt_team_waits(const loopegg_team* team) { return team->waiting > 0; }

/* Scratch memory of kernels. Blocks are kept per member and given out again: a kernel asks for the same sizes every time. */
static void* allocate(int device, int device_index, uint64_t bytes, int code, int bits) {
    (void)device, (void)device_index, (void)code, (void)bits;
    member* me = here;
    int empty = -1;
    bytes = (bytes + line - 1) / line * line;
    if (!me) return aligned_alloc(line, bytes);
    for (int i = 0; i < kept_blocks; ++i) {
        if (me->blocks[i].memory && !me->blocks[i].used && me->blocks[i].bytes >= bytes && me->blocks[i].bytes <= 4 * bytes) {
            me->blocks[i].used = 1;
            return me->blocks[i].memory;
        }
        if (!me->blocks[i].used) empty = i;
    }
    if (empty < 0) return aligned_alloc(line, bytes);
    free(me->blocks[empty].memory);
    me->blocks[empty].memory = aligned_alloc(line, bytes);
    me->blocks[empty].bytes = bytes;
    me->blocks[empty].used = me->blocks[empty].memory != NULL;
    return me->blocks[empty].memory;
}
static int release(int device, int device_index, void* memory) {
    (void)device, (void)device_index;
    member* me = here;
    for (int i = 0; me && i < kept_blocks; ++i)
        if (me->blocks[i].memory == memory && me->blocks[i].used) {
            me->blocks[i].used = 0;
            return 0;
        }
    free(memory);
    return 0;
}

/* Generated code reaches its helpers through these pointers (weak in every kernel object). */
int (*__TVMBackendParallelLaunch)(task, void*, int) = launch;
void* (*__TVMBackendAllocWorkspace)(int, int, uint64_t, int, int) = allocate;
int (*__TVMBackendFreeWorkspace)(int, int, void*) = release;
void* TVMBackendAllocWorkspace(int device, int device_index, uint64_t bytes, int code, int bits) { return allocate(device, device_index, bytes, code, bits); }
int TVMBackendFreeWorkspace(int device, int device_index, void* memory) { return release(device, device_index, memory); }
