// Times of something that is run again and again, and which of them the machine did not disturb.
#pragma once
#include <functional>
#include <vector>

namespace loopegg {

struct Samples {
    std::vector<double> ms{};
    int clean = 0;  // the number of samples during which the processors were ours from beginning to end
};

// Takes short samples, so that many fit between two interruptions. Samples that were interrupted count only if there is nothing better.
Samples take_samples(const std::function<void()>& run, int samples);

}  // namespace loopegg
