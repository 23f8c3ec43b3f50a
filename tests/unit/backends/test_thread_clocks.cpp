// The clocks by which a timing tells whether its threads were interrupted.
#include <atomic>
#include <chrono>
#include <thread>

#include <catch2/catch.hpp>

#include "backends/measure/thread_clocks.hpp"

using namespace loopegg;

TEST_CASE("threads never seem to have worked for longer than the time that passed", "[unit]") {
    std::atomic<bool> spins{false}, stop{false};
    std::thread helper([&] {
        for (spins = true; !stop;) {
        }
    });
    while (!spins) std::this_thread::yield();
    const ThreadClocks clocks;
    using Clock = std::chrono::steady_clock;
    auto since = [](Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); };
    double most = 0, sum = 0;
    for (int sample = 0; sample < 100; ++sample) {  // shorter than a tick of the scheduler
        const Clock::time_point outer = Clock::now();
        const double before = clocks.seconds();
        for (const Clock::time_point t = Clock::now(); since(t) < 0.0005;) {
        }
        const double worked = clocks.seconds() - before;
        most = std::max(most, worked / since(outer)), sum += worked;
    }
    stop = true;
    helper.join();
    CHECK(most < 2.02);  // this thread and the helper
    CHECK(sum > 0);
}
