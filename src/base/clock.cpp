#include "base/clock.hpp"

namespace loopegg {

double clock_seconds(clockid_t clock) {
    timespec t{};
    return clock_gettime(clock, &t) == 0 ? static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec) : 0;
}

double monotonic_seconds() { return clock_seconds(CLOCK_MONOTONIC); }

}  // namespace loopegg
