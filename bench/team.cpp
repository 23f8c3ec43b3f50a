// What a parallel loop costs besides its work, by the number of threads: microseconds of an empty loop, of a loop in which every thread takes part (each turn
// waits until all have begun), of the same after a pause in which the helpers fell asleep, and of two such loops in one region. Then how much faster a loop of
// even turns is than on one thread, and a loop of uneven turns.
//
//     bench_team [LARGEST_TEAM]       default: the threads of a default team
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "backends/runtime/loopegg_runtime.h"

extern "C" {
struct ParallelGroup {
    void* sync;
    std::int32_t count;
};
extern int (*__TVMBackendParallelLaunch)(int (*)(int, ParallelGroup*, void*), void*, int);
}

namespace {

using Clock = std::chrono::steady_clock;

double microseconds(Clock::time_point since) { return std::chrono::duration<double, std::micro>(Clock::now() - since).count(); }

// Keeps a core busy for about so many steps of arithmetic.
double work(long steps) {
    volatile double sum = 1;
    for (long i = 0; i < steps; ++i) sum = sum * 1.0000001 + 1e-9;
    return sum;
}

struct Loop {
    int turns;
    std::function<long(int)> steps;  // of the work of a turn
};
int part(int index, ParallelGroup* group, void* data) {
    const Loop& loop = *static_cast<const Loop*>(data);
    const int chunk = (loop.turns + group->count - 1) / group->count;
    for (int t = index * chunk; t < std::min(loop.turns, (index + 1) * chunk); ++t)
        if (const long steps = loop.steps(t)) work(steps);
    return 0;
}
void run(Loop& loop) { __TVMBackendParallelLaunch(part, &loop, 0); }
int run_one(void* loop) { return __TVMBackendParallelLaunch(part, loop, 0); }

double median(std::vector<double> v) {
    std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
    return v[v.size() / 2];
}

// The median of many calls, in microseconds; `before` is not timed.
double timed(int calls, const std::function<void()>& call, const std::function<void()>& before = {}) {
    std::vector<double> all;
    for (int i = 0; i < calls; ++i) {
        if (before) before();
        const auto begin = Clock::now();
        call();
        all.push_back(microseconds(begin));
    }
    return median(all);
}

void cost_of(int threads) {
    loopegg_team* team = loopeggrt_team_create(threads);
    loopeggrt_team_enter(team);
    std::atomic<int> begun{0};
    Loop empty{threads, [](int) { return 0L; }}, all{threads, [&](int) {
                                                         for (++begun; begun < threads;) {
                                                         }
                                                         return 0L;
                                                     }};
    Loop even{64, [](int) { return 2000L; }}, uneven{64, [](int t) { return t < 8 ? 9000L : 1000L; }};
    const auto again = [&] { begun = 0; };
    const auto each = [&](Loop& loop) {
        loopeggrt_team_turns(team, loop.turns);
        run(loop);
    };
    each(all);
    const double nothing = timed(5000, [&] { each(empty); });
    const double warm = timed(
        2000, [&] { each(all); }, again);
    const double cold = timed(
        50, [&] { each(all); },
        [&] {
            again();
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
        });
    const double joined = timed(
        2000,
        [&] {
            loopeggrt_team_join(team, run_one, &empty);
            each(all);
        },
        again);
    const double whole = timed(200, [&] { each(even); });
    const double spread = timed(200, [&] { each(uneven); });
    loopeggrt_team_use(team, 1);
    const double alone = timed(50, [&] { each(even); }), alone_uneven = timed(50, [&] { each(uneven); });
    std::printf("%7d %12.2f %12.2f %12.2f %12.2f %14.2f %14.2f\n", threads, nothing, warm, cold, joined, alone / whole, alone_uneven / spread);
    loopeggrt_team_leave(team);
    loopeggrt_team_destroy(team);
}

}  // namespace

int main(int argc, char** argv) {
    const int most = argc > 1 ? std::atoi(argv[1]) : loopeggrt_default_threads();
    std::printf("%7s %12s %12s %12s %12s %14s %14s\n", "threads", "empty, us", "all, us", "asleep, us", "two, us", "even, times", "uneven, times");
    for (int threads = 1; threads <= most; threads = threads < 4 ? threads + 1 : threads * 2) cost_of(threads);
    return 0;
}
