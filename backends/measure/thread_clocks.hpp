// The processor time of this process, thread by thread and to the microsecond.
#pragma once
#include <vector>

#include "base/clock.hpp"

namespace loopegg {

// Of the threads that there are when it is made. The clock of the whole process is no use for short samples: for a thread that runs on another
// core it is behind by up to a tick of the scheduler, several milliseconds, and then catches up at once.
class ThreadClocks {
public:
    ThreadClocks();
    double seconds() const;   // of all of them together

private:
    std::vector<clockid_t> clocks_;
};

}  // namespace loopegg
