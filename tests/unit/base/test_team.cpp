// Work that several threads share.
#include <catch2/catch.hpp>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <stdexcept>

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
