// What makes CUDA C plain C++: shared memory is static, and threads of a block wait at a barrier.
#pragma once

namespace loopegg {

constexpr const char* cuda_prelude = R"(#include <algorithm>
#include <barrier>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>
#define alignas(n) __attribute__((aligned(n)))
#define __global__
#define __shared__ static
#define __launch_bounds__(...)
using std::max;
using std::min;
struct dim3_ { int x, y, z; };
struct int2 { int x, y; };
struct int4 { int x, y, z, w; };
struct float2 { float x, y; };
struct float4 { float x, y, z, w; };
static inline int2 make_int2(int x, int y) { return {x, y}; }
static inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static thread_local dim3_ threadIdx, blockIdx;
static std::barrier<>* block_barrier = nullptr;
static inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
static inline void __syncthreads() { block_barrier->arrive_and_wait(); }
)";

}  // namespace loopegg
