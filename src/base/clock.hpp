// The clocks of the system, in seconds.
#pragma once
#include <time.h>

namespace loopegg {

// CLOCK_MONOTONIC: the time that passes; CLOCK_THREAD_CPUTIME_ID: the processor time of this thread. 0 for a clock that there is not.
double clock_seconds(clockid_t clock);

}  // namespace loopegg
