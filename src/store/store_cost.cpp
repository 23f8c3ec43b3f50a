#include "store/store_cost.hpp"

#include <ctime>

#include <atomic>

#include "base/clock.hpp"

namespace loopegg {
namespace {

std::atomic<std::int64_t> calls{0}, nanoseconds{0};
thread_local int depth = 0;

}  // namespace

StoreCost operator-(const StoreCost& now, const StoreCost& before) { return {now.calls - before.calls, now.seconds - before.seconds}; }

StoreCost store_cost() { return {calls.load(), static_cast<double>(nanoseconds.load()) * 1e-9}; }

StoreCall::StoreCall() {
    if (depth++ == 0) start_ = clock_seconds(CLOCK_MONOTONIC);
}

StoreCall::~StoreCall() {
    if (--depth > 0) return;
    ++calls;
    nanoseconds += static_cast<std::int64_t>((clock_seconds(CLOCK_MONOTONIC) - start_) * 1e9);
}

}  // namespace loopegg
