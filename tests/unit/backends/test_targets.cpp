#include <catch2/catch.hpp>

#include "backends/lower/tvm_adapter.hpp"
#include "backends/target/parse_target.hpp"
#include "backends/target/target.hpp"
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

TEST_CASE("a target's file with a mistake is answered with the place", "[errors]") {
    auto host = [] { return HostFacts{{{"mtriple", "x86_64-linux-gnu"}}, {}}; };
    auto read = [&](const char* text) { return parse_target(make_source("t.json", text), host); };
    const struct {
        const char *text, *words, *place;
    } mistakes[] = {
        {R"({"name": "t"})", "this object has no \"tvm\"", "t.json:1:1"},
        {R"({"name": 4, "tvm": {"kind": "llvm"}})", "expected a string, found a number", "t.json:1:10"},
        {R"({"name": "t", "reech": "here", "tvm": {"kind": "llvm"}})", "did you mean 'reach'", "t.json:1:15"},
        {R"({"name": "t", "reach": "her", "tvm": {"kind": "llvm"}})", "did you mean 'here'", "t.json:1:24"},
        {R"({"name": "t", "tvm": {"kind": "metal"}})", "the TVM kind 'metal' is not one that loopegg compiles for", "t.json:1:31"},
        {R"({"name": "t", "tvm": {"kind": "cuda"}})", "this object has no \"arch\"", "t.json:1:22"},
        {R"({"name": "t", "reach": "rpc", "tvm": {"kind": "llvm"}})", "needs an \"address\"", "t.json:1:1"},
        {R"({"name": "t", "reach": "rpc", "address": "board", "tvm": {"kind": "llvm"}})", "'board' is not HOST:PORT", "t.json:1:42"},
        {R"({"name": "t", "tvm": {"kind": "llvm"}, "machine": {"cores": 0}})", "expected a whole number from 1", "t.json:1:61"},
        {R"({"name": "t", "tvm": {"kind": "llvm"}, "machine": {"ghz": -1}})", "'ghz' must be more than 0", "t.json:1:59"},
        {R"({"name": "t", "tvm": {"kind": "llvm"}, "machine": {"gigahertz": 1}})", "unknown key \"gigahertz\"", "t.json:1:52"},
    };
    for (const auto& m : mistakes) {
        CAPTURE(m.text);
        CHECK_THROWS_WITH(read(m.text), Catch::Contains(m.words) && Catch::Contains(m.place));
    }
    const Target native = read(R"({"name": "t", "reach": "here", "tvm": {"kind": "llvm", "native": true}, "machine": {"native": true, "memory_gbs": 3}})");
    CHECK(native.architecture() == "x86_64");
    CHECK(!native.tvm.contains("native"));
    CHECK(native.machine.memory_gbs == 3);
}
