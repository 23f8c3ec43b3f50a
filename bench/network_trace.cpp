// Where a compiled network spends its time on several threads: when each step began and ended, and when each thread began and ended each part of its loops.
// It is linked with the sources of one network, which `loopegg compile` or a run's out/optimized holds, and is between its runtime and its kernels:
//
//     for f in FOLDER/*.c; do cc -O2 -std=gnu11 -c $f; done
//     c++ -O2 -std=c++20 -IFOLDER -I. bench/network_trace.cpp *.o FOLDER/*.o -lm -lpthread -o trace
//     ./trace FOLDER/weights.bin THREADS [EVENTS.csv]
//
// It prints a line for each step, in microseconds (medians of many runs), and their sums:
//   wall      from the step's begin to the next step's
//   serial    of it, before and after its parallel loops: one thread works
//   fork      from the begin of a loop until the average thread that took parts has begun
//   work      what an even share of all parts would be for each thread that the step uses
//   uneven    from there to the end of the last part, less `fork`
//   join      from the end of the last part until the caller continues
// EVENTS.csv gets the run of median time: step, thread, part, begin, end.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "loopegg_network.h"

extern "C" {
struct Group {
    void* sync;
    std::int32_t count;
};
using Task = int (*)(int, Group*, void*);
extern int (*__TVMBackendParallelLaunch)(Task, void*, int);
}

namespace {

constexpr int max_threads = 256, max_steps = 512;

std::int64_t now() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

struct Event {
    int step, part;
    std::int64_t begin, end;
};
struct alignas(64) Thread {
    std::vector<Event> events;
};
std::array<Thread, max_threads> threads;
std::atomic<int> known{0};

Thread& mine() {
    thread_local Thread& own = threads[static_cast<std::size_t>(known++ % max_threads)];
    return own;
}

struct Step {
    std::int64_t begin = 0, end = 0, loop_begin = 0, loop_end = 0;
};
std::array<Step, max_steps> steps;
int step_now = 0;
const loopegg_tables* original = nullptr;

struct Wrapped {
    Task run;
    void* data;
    int step;
};
int timed_part(int part, Group* group, void* data) {
    const Wrapped& w = *static_cast<const Wrapped*>(data);
    const std::int64_t begin = now();
    const int failed = w.run(part, group, w.data);
    mine().events.push_back({w.step, part, begin, now()});
    return failed;
}
int (*launch)(Task, void*, int) = nullptr;
int timed_launch(Task run, void* data, int count) {
    Wrapped w{run, data, step_now};
    Step& s = steps[static_cast<std::size_t>(w.step)];
    const std::int64_t begin = now();
    if (!s.loop_begin) s.loop_begin = begin;
    const int failed = launch(timed_part, &w, count);
    s.loop_end = now();
    return failed;
}

// A kernel knows nothing of its step, so every step has a function of its own.
template <int step>
int timed_step(void* self, const loopegg_argument* arguments, std::int32_t count, void* result) {
    step_now = step;
    steps[step].begin = now();
    const int failed = original->kernels[original->step[step].kernel](self, arguments, count, result);
    steps[step].end = now();
    return failed;
}
template <std::size_t... step>
std::array<loopegg_kernel, sizeof...(step)> every_step(std::index_sequence<step...>) {
    return {timed_step<static_cast<int>(step)>...};
}

enum Figure { wall, serial, fork_, work, uneven, join, parts, takers, figures };
constexpr const char* names[] = {"wall", "serial", "fork", "work", "uneven", "join", "parts", "threads"};
using Row = std::array<double, figures>;

// The figures of one run. Steps that share a region are counted where the region ends.
std::vector<Row> figures_of(int count, std::int64_t run_end) {
    std::vector<Row> rows(static_cast<std::size_t>(count), Row{});
    std::vector<std::int64_t> first(rows.size(), 0), last(rows.size(), 0);
    std::vector<double> busy(rows.size(), 0), begins(rows.size(), 0);
    for (const Thread& t : threads) {
        std::vector<bool> seen(rows.size(), false);
        for (const Event& e : t.events) {
            const auto s = static_cast<std::size_t>(e.step);
            busy[s] += static_cast<double>(e.end - e.begin), rows[s][parts] += 1;
            last[s] = std::max(last[s], e.end);
            if (!seen[s]) seen[s] = true, rows[s][takers] += 1, begins[s] += static_cast<double>(e.begin - steps[s].loop_begin);
        }
    }
    for (std::size_t s = 0; s < rows.size(); ++s) {
        const Step& step = steps[s];
        Row& r = rows[s];
        if (!step.begin) continue;
        std::int64_t next = run_end;
        for (std::size_t later = s + 1; later < rows.size(); ++later)
            if (steps[later].begin) {
                next = steps[later].begin;
                break;
            }
        r[wall] = static_cast<double>(next - step.begin);
        if (r[takers] == 0 || next < last[s]) {
            r[serial] = r[wall];
        } else {
            r[serial] = static_cast<double>(step.loop_begin - step.begin + next - step.loop_end);
            r[fork_] = begins[s] / r[takers];
            r[work] = busy[s] / r[takers];
            r[uneven] = static_cast<double>(last[s] - step.loop_begin) - r[fork_] - r[work];
            r[join] = static_cast<double>(step.loop_end - last[s]);
        }
        for (int f = wall; f <= join; ++f) r[static_cast<std::size_t>(f)] /= 1000;
    }
    return rows;
}

double median(std::vector<double> v) {
    std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
    return v[v.size() / 2];
}

void write_events(const char* file, const std::vector<Event>& events, const std::vector<int>& owners, std::int64_t begin) {
    std::FILE* out = std::fopen(file, "w");
    if (!out) return std::perror(file);
    std::fprintf(out, "step,thread,part,begin_us,end_us\n");
    for (std::size_t i = 0; i < events.size(); ++i)
        std::fprintf(out, "%d,%d,%d,%.2f,%.2f\n", events[i].step, owners[i], events[i].part, 1e-3 * static_cast<double>(events[i].begin - begin),
                     1e-3 * static_cast<double>(events[i].end - begin));
    std::fclose(out);
}

struct Run {
    double us = 0;
    std::vector<Row> rows;
    std::vector<Event> events;
    std::vector<int> owners;
    std::int64_t begin = 0;
};

Run traced(loopegg_context* context, const float* const* in, float* const* out, int count) {
    for (Thread& t : threads) t.events.clear();
    steps.fill({});
    Run run;
    run.begin = now();
    if (loopeggrt_context_run(context, in, out, nullptr)) std::exit((std::fprintf(stderr, "the network failed\n"), 1));
    const std::int64_t end = now();
    run.us = static_cast<double>(end - run.begin) / 1000, run.rows = figures_of(count, end);
    for (std::size_t t = 0; t < threads.size(); ++t)
        for (const Event& e : threads[t].events) run.events.push_back(e), run.owners.push_back(static_cast<int>(t));
    return run;
}

void print(const std::vector<Run>& runs, int count) {
    std::printf("%5s", "step");
    for (const char* name : names) std::printf(" %8s", name);
    std::printf("\n");
    Row sums{};
    for (std::size_t s = 0; s < static_cast<std::size_t>(count); ++s) {
        std::printf("%5zu", s);
        for (std::size_t f = 0; f < figures; ++f) {
            std::vector<double> all;
            for (const Run& r : runs) all.push_back(r.rows[s][f]);
            const double middle = median(all);
            sums[f] += middle;
            std::printf(" %8.1f", middle);
        }
        std::printf("\n");
    }
    std::printf("%5s", "all");
    for (double sum : sums) std::printf(" %8.1f", sum);
    std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) return std::fprintf(stderr, "usage: trace WEIGHTS THREADS [EVENTS.csv]\n"), 2;
    const loopegg_tables tables = loopeggrt_tables;
    if (tables.steps > max_steps) return std::fprintf(stderr, "the network has %d steps, and at most %d can be traced\n", tables.steps, max_steps), 2;
    original = &tables;
    const auto kernels = every_step(std::make_index_sequence<max_steps>());
    std::vector<loopegg_step> renamed(tables.step, tables.step + tables.steps);
    for (int s = 0; s < tables.steps; ++s)
        if (renamed[static_cast<std::size_t>(s)].kernel >= 0) renamed[static_cast<std::size_t>(s)].kernel = s;
    loopegg_tables wrapped = tables;
    wrapped.kernels = kernels.data(), wrapped.step = renamed.data();
    launch = __TVMBackendParallelLaunch, __TVMBackendParallelLaunch = timed_launch;
    loopegg_network* network = loopeggrt_network_open(&wrapped, argv[1]);
    loopegg_context* context = network ? loopeggrt_context_create(&wrapped, network, std::atoi(argv[2])) : nullptr;
    if (!context) return std::fprintf(stderr, "%s: these are not the weights of this network, or there is no memory\n", argv[1]), 1;

    std::vector<std::vector<float>> values;
    std::vector<const float*> in;
    std::vector<float*> out;
    for (int i = 0; i < tables.inputs; ++i) values.emplace_back(static_cast<std::size_t>(tables.input_sizes[i]), 1.0f);
    for (int o = 0; o < tables.outputs; ++o) values.emplace_back(static_cast<std::size_t>(tables.output_sizes[o]), 0.0f);
    for (int i = 0; i < tables.inputs; ++i) in.push_back(values[static_cast<std::size_t>(i)].data());
    for (int o = 0; o < tables.outputs; ++o) out.push_back(values[static_cast<std::size_t>(tables.inputs + o)].data());

    for (int warm = 0; warm < 100; ++warm) traced(context, in.data(), out.data(), tables.steps);
    std::vector<Run> runs;
    for (int i = 0; i < 200; ++i) runs.push_back(traced(context, in.data(), out.data(), tables.steps));
    std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.us < b.us; });
    std::printf("%d threads: median %.1f us, quartiles %.1f to %.1f, of %zu runs\n", loopeggrt_context_threads(context), runs[runs.size() / 2].us,
                runs[runs.size() / 4].us, runs[3 * runs.size() / 4].us, runs.size());
    print(runs, tables.steps);
    if (argc > 3) write_events(argv[3], runs[runs.size() / 2].events, runs[runs.size() / 2].owners, runs[runs.size() / 2].begin);
    loopeggrt_context_destroy(context);
    loopeggrt_network_close(network);
    return 0;
}
