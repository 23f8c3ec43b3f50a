// The clocks of the system, in seconds.
#pragma once
#include <time.h>

namespace loopegg {

// CLOCK_MONOTONIC is the time that passes, and CLOCK_THREAD_CPUTIME_ID the processor time of this thread. A clock that the system lacks gives 0.
double clock_seconds(clockid_t clock);
double monotonic_seconds();  // of CLOCK_MONOTONIC

}  // namespace loopegg
