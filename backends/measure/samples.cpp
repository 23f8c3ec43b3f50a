#include "backends/measure/samples.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>

namespace loopegg {
namespace {

double own_cpu() { return clock_seconds(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace

Samples take_samples(const std::function<void()>& run, int samples) {
    const double start = monotonic_seconds();
    int calls = 0;
    do run(), ++calls;
    while (monotonic_seconds() - start < 0.002 && calls < 1000);
    double each = 1e9;
    for (int i = 0; i < 3; ++i) {
        const double t = monotonic_seconds();
        run();
        each = std::min(each, monotonic_seconds() - t);
    }
    const int number = std::clamp(static_cast<int>(std::ceil(0.0004 / std::max(each, 1e-9))), 1, 20000);
    // Helper threads that spin between loops use their processors all the time. So in a sample with less processor time than others, some thread had to wait
    // for its processor.
    const ThreadClocks threads;
    struct Sample {
        double ms, mine, all;
    };
    std::vector<Sample> taken;
    std::vector<double> clean, disturbed;
    for (int attempt = 0; attempt < 4 * samples && static_cast<int>(clean.size()) < samples; ++attempt) {
        const double t = monotonic_seconds(), c = own_cpu(), p = threads.seconds();
        for (int i = 0; i < number; ++i) run();
        const double took = monotonic_seconds() - t;
        taken.push_back({took / number * 1e3, (own_cpu() - c) / took, (threads.seconds() - p) / took});
        double most = 0;
        for (const Sample& s : taken) most = std::max(most, s.all);
        clean.clear(), disturbed.clear();
        for (const Sample& s : taken) (s.mine > 0.95 && s.all > 0.95 * most ? clean : disturbed).push_back(s.ms);
        if (monotonic_seconds() - start > 5) break;
    }
    const int honest = static_cast<int>(clean.size());
    std::sort(disturbed.begin(), disturbed.end());
    for (double d : disturbed)
        if (static_cast<int>(clean.size()) < samples) clean.push_back(d);
    return {clean, honest};
}

namespace {

// What pthread_getcpuclockid() would answer for a thread of which only the kernel's number is known: the complement of the number, then "one thread" (4)
// and "time on a processor" (2).
clockid_t clock_of(pid_t thread) { return (~static_cast<clockid_t>(thread) << 3) | 4 | 2; }

}  // namespace

ThreadClocks::ThreadClocks() {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) clocks_.push_back(clock_of(std::stoi(entry.path().filename().string())));
}

double ThreadClocks::seconds() const {
    double sum = 0;
    for (const clockid_t clock : clocks_) sum += clock_seconds(clock);
    return sum;
}

}  // namespace loopegg
