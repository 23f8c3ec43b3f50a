// What makes CUDA C plain C++: shared memory is static, and threads of a block wait at a barrier.
#pragma once

namespace loopegg {

constexpr const char* cuda_prelude = R"(#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>
#define alignas(n) __attribute__((aligned(n)))
#define __global__
#define __shared__ static
#define __launch_bounds__(...)
using std::max;
using std::min;
struct dim3_ { int x, y, z; };
struct float4 { float x, y, z, w; };
static thread_local dim3_ threadIdx, blockIdx;
static std::barrier<>* block_barrier = nullptr;
static inline void __syncthreads() { block_barrier->arrive_and_wait(); }
)";

}  // namespace loopegg
