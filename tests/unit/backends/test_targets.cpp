// Targets as files describe them, and the pool of kernels that is compiled for them.
#include <catch2/catch.hpp>

#include "backends/kernel/kernel_cache.hpp"
#include "backends/lower/tvm_adapter.hpp"
#include "backends/measure/tvm_measurer.hpp"
#include "backends/target/parse_target.hpp"
#include "backends/target/target.hpp"
#include "base/error.hpp"
#include "base/sexpr.hpp"
#include "nest/domain/domain.hpp"

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

namespace {

const Term nest = complete(parse_term("(nest (linear 2 4 8) (at n (at co (at ci done))))"));

std::size_t files_in(const std::filesystem::path& folder) {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

}  // namespace

TEST_CASE("a kernel comes from the pool as it was compiled, for the seconds that it took", "[unit]") {
    const ScratchFile place(".pool");
    const ScratchFolder folder(place.path());
    const Target host = find_target("host");
    const TimedKernel made = KernelPool(folder.path()).compile(nest, host), found = KernelPool(folder.path()).compile(nest, host);
    CHECK(files_in(folder.path()) == 1);
    CHECK(found.kernel.code == made.kernel.code);
    CHECK(found.kernel.symbol == made.kernel.symbol);
    CHECK(found.kernel.parameters.size() == made.kernel.parameters.size());
    CHECK(made.seconds > 0);
    CHECK(found.seconds == made.seconds);
    CHECK(KernelPool().compile(nest, host).kernel.code == made.kernel.code);
}

TEST_CASE("CUDA kernels keep the order of their arguments on the pool", "[unit]") {
    const ScratchFile place(".pool");
    const ScratchFolder folder(place.path());
    const Term on_gpu = parse_term("(nest (linear 2 4 8) (bind blockIdx.x n (bind threadIdx.x co (at ci done))))");
    const Target gpu = find_target("gtx1080ti");
    const Kernel made = KernelPool(folder.path()).compile(on_gpu, gpu).kernel, found = KernelPool(folder.path()).compile(on_gpu, gpu).kernel;
    CHECK(found.code == made.code);
    CHECK(found.arguments == made.arguments);
    CHECK(found.launch.grid == made.launch.grid);
}

TEST_CASE("what a measurement compiled is on the pool for the network", "[flow]") {
    const ScratchFile place(".pool"), store(".sqlite");
    const ScratchFolder folder(place.path());
    MeasurerOptions options;
    options.store = store.path(), options.rounds = 1, options.samples = 1, options.pool = folder.path();
    const std::vector<Candidate> asked{{nest, "host"}};
    REQUIRE(TvmMeasurer(options).measure(asked)[0].latency);
    CHECK(files_in(folder.path()) == 1);
    KernelCache cache{KernelPool(folder.path())};
    CHECK(cache.compile(nest, find_target("host")).kernel.code == KernelPool().compile(nest, find_target("host")).kernel.code);
    CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("a folder for scratch starts empty and leaves nothing", "[unit]") {
    const ScratchFile place(".folder");
    std::filesystem::create_directories(place.path() / "left" / "behind");
    {
        const ScratchFolder folder(place.path());
        CHECK(files_in(folder.path()) == 0);
        write_scratch(folder.path() / "file", "text");
    }
    CHECK_FALSE(std::filesystem::exists(place.path()));
}
