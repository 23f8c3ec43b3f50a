// What stores cost this process: how often it called them, and how long it waited for them.
#pragma once
#include <cstdint>

namespace loopegg {

// The seconds are summed over threads, so they may be more than the time that passed.
struct StoreCost {
    std::int64_t calls = 0;
    double seconds = 0;
};
StoreCost operator-(const StoreCost& now, const StoreCost& before);

// The cost since the process began. Work between the statements of a transaction is not work of the store, and does not count.
StoreCost store_cost();

// Counts one call, from here to the end of the scope. A call inside another call of the same thread counts as a part of the outer call.
class StoreCall {
public:
    StoreCall();
    ~StoreCall();
    StoreCall(const StoreCall&) = delete;
    StoreCall& operator=(const StoreCall&) = delete;

private:
    double start_ = 0;
};

}  // namespace loopegg
