// Work that several threads share.
#include <catch2/catch.hpp>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <stdexcept>

#include "base/process.hpp"
#include "base/team.hpp"

using namespace loopegg;

TEST_CASE("every member works once", "[unit][base]") {
    std::atomic<int> sum{0};
    run_together(8, [&](std::size_t m) { sum += 1 << m; });
    CHECK(sum == 255);
    run_together(0, [&](std::size_t) { sum = 0; });
    CHECK(sum == 255);
}

TEST_CASE("what a member throws comes out after all have ended", "[unit][base]") {
    std::atomic<int> ended{0};
    CHECK_THROWS_WITH(run_together(4,
                                   [&](std::size_t m) {
                                       ++ended;
                                       if (m >= 2) throw std::runtime_error("member " + std::to_string(m));
                                   }),
                      "member 2");
    CHECK(ended == 4);
}

TEST_CASE("where the system gives no thread, the caller does the work", "[unit][base]") {
    // In a process of its own, whose memory holds no further stack.
    const pid_t child = ::fork();
    if (child == 0) {
        rlim_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        const rlim_t most = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (rlim_t{1} << 20);
        const rlimit memory{most, most};
        ::setrlimit(RLIMIT_AS, &memory);
        std::atomic<int> sum{0};
        run_together(4, [&](std::size_t m) { sum += 1 << m; });
        ::_exit(sum == 15 ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
}

TEST_CASE("a filter gets its input whole, and what it says comes back", "[unit][base]") {
    const std::string much(300'000, 'x');
    const Filtered same = run_filter({"/bin/cat"}, much, 20);
    CHECK(same.ended == 0);
    CHECK(same.output == much);
    CHECK(run_filter({"/bin/sh", "-c", "echo why >&2; exit 3"}, "", 20).errors == "why\n");
    CHECK(run_filter({"/no/such/program"}, "", 20).ended == -1);
}

TEST_CASE("a filter that only waits is waited for, and one that works without end is stopped", "[unit][base]") {
    const Filtered waits = run_filter({"/bin/sh", "-c", "sleep 0.5; echo done"}, "", 0.2);
    CHECK_FALSE(waits.too_long);
    CHECK(waits.output == "done\n");
    CHECK(run_filter({"/bin/sh", "-c", "while :; do :; done"}, "", 0.2).too_long);
    CHECK(run_filter({"/bin/sleep", "3600"}, "", 0.02).too_long);
}
