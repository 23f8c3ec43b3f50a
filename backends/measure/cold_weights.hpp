// Weights in the state in which a network finds them. Since a kernel last ran, the weights of all other kernels were read, so its own weights are no longer
// in the caches.
//
// A candidate that is timed again and again with one set of weights finds them in the caches, and a schedule that reads weights badly looks
// good. Here each run takes the next stretch of one large memory, which is as large as the network's weights together.
#pragma once
#include <cstdint>
#include <string>

#include "backends/kernel/loaded_kernel.hpp"
#include "graph/graph.hpp"

namespace loopegg {

class ColdWeights {
public:
    explicit ColdWeights(std::int64_t bytes) : bytes_(bytes) {}
    // Where a run finds `floats` weights: a cache line is given again only after all others were given.
    float* next(std::int64_t floats);
    std::int64_t bytes() const { return bytes_; }

private:
    std::int64_t bytes_, at_ = 0;
    AlignedFloats memory_;
};

// How much memory represents a network of so many bytes of weights: the next power of two, at most 128 MiB, which no cache holds. The weights of a
// network of less than 1 MiB stay in the caches, so the answer is 0.
std::int64_t cold_bytes_for(std::int64_t weight_bytes);
std::int64_t cold_bytes_for(const Weights& weights);

// What the store keeps next to a time: "warm", or "cold 64 MiB".
std::string timing_words(std::int64_t cold_bytes);

}  // namespace loopegg
