// The clocks of the system, in seconds.
#pragma once
#include <time.h>

namespace loopegg {

// CLOCK_MONOTONIC is the time that passes, and CLOCK_THREAD_CPUTIME_ID the processor time of this thread. A clock that the system lacks gives 0.
inline double clock_seconds(clockid_t clock) {
    timespec t{};
    return clock_gettime(clock, &t) == 0 ? static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec) : 0;
}
inline double monotonic_seconds() { return clock_seconds(CLOCK_MONOTONIC); }

}  // namespace loopegg
