#include "backends/measure/thread_clocks.hpp"

#include <filesystem>
#include <string>

namespace loopegg {
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
