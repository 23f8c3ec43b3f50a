#include <catch2/catch.hpp>

#include "backends/target.hpp"
#include "backends/tvm_adapter.hpp"
#include "base/error.hpp"

using namespace loopegg;

TEST_CASE("every function that loopegg calls is in this TVM", "[unit]") { CHECK_NOTHROW(tv::load()); }

TEST_CASE("the six targets are there and TVM takes each of them", "[unit]") {
    for (const char* name : {"host", "i7", "a57", "gtx1080ti", "nano", "h200"}) {
        CAPTURE(name);
        Target t = find_target(name);
        CHECK(t.name == name);
        CHECK(t.machine.peak_gflops() > 1);
        CHECK_NOTHROW(tv::obj(tv::Fn::target, t.tvm.dump()));
    }
    CHECK(find_target("gtx1080ti").architecture() == "sm_61");
    CHECK(find_target("a57").architecture() == "aarch64");
}

TEST_CASE("an unknown target is answered with the known ones", "[errors]") {
    CHECK_THROWS_WITH(find_target("hots"), Catch::Contains("unknown target 'hots'") && Catch::Contains("did you mean 'host'"));
}
