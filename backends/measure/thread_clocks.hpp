// The processor time of this process, thread by thread and to the microsecond.
#pragma once
#include <vector>

#include "base/clock.hpp"

namespace loopegg {

// The clocks of the threads that exist when this object is made. The clock of the whole process is of no use for short samples: for a thread on another
// core that clock is behind by up to a tick of the scheduler, several milliseconds, and then catches up at once.
class ThreadClocks {
public:
    ThreadClocks();
    double seconds() const;  // of all these threads together

private:
    std::vector<clockid_t> clocks_;
};

}  // namespace loopegg
