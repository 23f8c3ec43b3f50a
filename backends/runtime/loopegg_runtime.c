/* A team of threads for parallel loops. The caller is member 0; the others spin for a moment after each loop, because the
   next one usually follows at once, and then sleep. One loop runs at a time: kernels never nest parallel loops. */
#define _GNU_SOURCE
#include "loopegg_runtime.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct {
    void* sync;
    int32_t count;
} group;
typedef int (*task)(int index, group* env, void* data);

enum { most_threads = 256, spins = 4000, shares = 4 };

static struct {
    pthread_mutex_t lock;
    int wanted, running; /* threads asked for; helpers started */
    pthread_t helpers[most_threads];
    cpu_set_t allowed;      /* processors of the process */
    int caller;             /* the processor that the caller was last seen on, plus one */
    _Atomic uint32_t round; /* counts loops; a change wakes the helpers */
    _Atomic uint64_t next;  /* round << 32 | the first part of the loop that nobody has taken */
    _Atomic int sleepers, finished, failed;
    task run;
    void* data;
    int count; /* parts of the loop: a few per thread, so that one who is held up holds up little */
} team = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void pause_briefly(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Takes parts of the given round until none is left. What run, data and count say stays true while a taken part is unfinished. */
static void work(uint32_t round) {
    for (;;) {
        uint64_t next = atomic_load_explicit(&team.next, memory_order_acquire);
        const int index = (int)(uint32_t)next;
        if ((uint32_t)(next >> 32) != round || index >= team.count) return;
        if (!atomic_compare_exchange_weak(&team.next, &next, next + 1)) continue;
        group env = {&team, team.count};
        if (team.run(index, &env, team.data)) atomic_store(&team.failed, 1);
        atomic_fetch_add_explicit(&team.finished, 1, memory_order_release);
    }
}

static void* help(void* argument) {
    (void)argument;
    uint32_t seen = atomic_load(&team.round);
    for (;;) {
        uint32_t round = atomic_load_explicit(&team.round, memory_order_acquire);
        for (int i = 0; round == seen && i < spins; ++i) {
            pause_briefly();
            round = atomic_load_explicit(&team.round, memory_order_acquire);
        }
        if (round == seen) {
            atomic_fetch_add(&team.sleepers, 1);
            while ((round = atomic_load(&team.round)) == seen) syscall(SYS_futex, &team.round, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
            atomic_fetch_sub(&team.sleepers, 1);
        }
        seen = round;
        work(round);
    }
    return NULL;
}

static int machine_cores(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

/* A helper that wakes behind its caller on one processor, while others do something unimportant, helps nobody: helpers stay off it. */
static void keep_apart(void) {
    const int here = sched_getcpu();
    if (here < 0 || team.caller == here + 1) return;
    if (!team.caller && sched_getaffinity(0, sizeof team.allowed, &team.allowed) != 0) return;
    team.caller = here + 1;
    cpu_set_t others = team.allowed;
    CPU_CLR(here, &others);
    if (CPU_COUNT(&others) < team.running) return;
    for (int i = 0; i < team.running; ++i) pthread_setaffinity_np(team.helpers[i], sizeof others, &others);
}

void loopegg_set_threads(int count) {
    if (count <= 0) {
        const char* text = getenv("LOOPEGG_THREADS");
        count = text ? atoi(text) : 0;
        if (count <= 0) count = machine_cores();
    }
    team.wanted = count > most_threads ? most_threads : count;
}
int loopegg_threads(void) {
    if (!team.wanted) loopegg_set_threads(0);
    return team.wanted;
}

static int launch(task run, void* data, int count) {
    (void)count;
    const int threads = loopegg_threads();
    if (threads == 1) {
        group env = {&team, 1};
        return run(0, &env, data);
    }
    pthread_mutex_lock(&team.lock);
    while (team.running < threads - 1) {
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        const int failed = pthread_create(&team.helpers[team.running], &attributes, help, NULL);
        pthread_attr_destroy(&attributes);
        if (failed) break;
        ++team.running;
        team.caller = 0;
    }
    keep_apart();
    const uint32_t round = atomic_load(&team.round) + 1;
    team.run = run;
    team.data = data;
    team.count = shares * threads;
    atomic_store_explicit(&team.failed, 0, memory_order_relaxed);
    atomic_store_explicit(&team.finished, 0, memory_order_relaxed);
    atomic_store(&team.next, (uint64_t)round << 32);
    atomic_store(&team.round, round);
    if (atomic_load(&team.sleepers)) syscall(SYS_futex, &team.round, FUTEX_WAKE_PRIVATE, most_threads, NULL, NULL, 0);
    work(round);
    for (int i = 0; atomic_load_explicit(&team.finished, memory_order_acquire) < team.count; ++i) {
        pause_briefly();
        if (i > spins) sched_yield(), i = 0;
    }
    const int failed = atomic_load(&team.failed);
    pthread_mutex_unlock(&team.lock);
    return failed ? -1 : 0;
}

/* Scratch memory of kernels. Blocks are kept per thread and given out again: a kernel asks for the same sizes every time. */
enum { kept_blocks = 8 };
static _Thread_local struct {
    void* memory;
    uint64_t bytes;
    int used;
} blocks[kept_blocks];

static void* allocate(int device, int device_index, uint64_t bytes, int code, int bits) {
    (void)device, (void)device_index, (void)code, (void)bits;
    bytes = (bytes + 63) / 64 * 64;
    int empty = -1;
    for (int i = 0; i < kept_blocks; ++i) {
        if (blocks[i].memory && !blocks[i].used && blocks[i].bytes >= bytes && blocks[i].bytes <= 4 * bytes) {
            blocks[i].used = 1;
            return blocks[i].memory;
        }
        if (!blocks[i].used) empty = i;
    }
    if (empty < 0) return aligned_alloc(64, bytes);
    free(blocks[empty].memory);
    blocks[empty].memory = aligned_alloc(64, bytes);
    blocks[empty].bytes = bytes;
    blocks[empty].used = blocks[empty].memory != NULL;
    return blocks[empty].memory;
}
static int release(int device, int device_index, void* memory) {
    (void)device, (void)device_index;
    for (int i = 0; i < kept_blocks; ++i)
        if (blocks[i].memory == memory && blocks[i].used) {
            blocks[i].used = 0;
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
