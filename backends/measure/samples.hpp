// Times of something that is run again and again, and which of them the machine did not disturb.
#pragma once
#include <functional>
#include <vector>

#include "base/clock.hpp"

namespace loopegg {

struct Samples {
    std::vector<double> ms{};
    int clean = 0;  // the number of samples during which the processors were ours from beginning to end
};

// Takes short samples, so that many fit between two interruptions. Samples that were interrupted count only if there is nothing better.
Samples take_samples(const std::function<void()>& run, int samples);

// The processor time of this process, thread by thread and to the microsecond.

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
