#include "backends/target/thread_count.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "backends/runtime/loopegg_runtime.h"
#include "backends/target/target.hpp"
#include "base/error.hpp"

namespace loopegg {
namespace {

// What this process may use, whatever LOOPEGG_THREADS says.
int allowed_processors() {
    cpu_set_t set;
    const int allowed = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
    const int quota = loopeggrt_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    return std::max(1, quota > 0 ? std::min(quota, allowed) : allowed);
}

}  // namespace

void use_threads(int threads, const Target& target) {
    if (threads == 0) return;
    if (target.reach != Reach::here)
        throw UsageError(Diagnostic{fmt::format("--threads: kernels for the target '{}' do not run on this machine", target.name),
                                    {},
                                    fmt::format("its schedules are made for {} cores, as its file or its board states", target.machine.cores)});
    if (const int here = allowed_processors(); threads > here)
        throw UsageError(Diagnostic{
            fmt::format("--threads {}: this process may use {} of the processors here, and schedules are timed on as many threads as they are made for",
                        threads, here),
            {},
            "run it where there are as many, or make that machine a target that ssh reaches ('loopegg targets --help')"});
    setenv("LOOPEGG_THREADS", std::to_string(threads).c_str(), 1);  // the processes that compile and time inherit it
}

}  // namespace loopegg
