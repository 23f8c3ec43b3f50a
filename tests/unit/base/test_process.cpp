// Programs that are run and waited for.
#include <catch2/catch.hpp>

#include "base/process.hpp"

using namespace loopegg;

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
