#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>

#include "backends/kernel/kernel_cache.hpp"
#include "backends/measure/latency_store.hpp"
#include "base/places.hpp"
#include "base/scratch.hpp"
#include "nest/term/grammar.hpp"
#include "optimize/tune/tuning.hpp"
#include "test_runs.hpp"

using namespace loopegg;

namespace {

// The environment's store for as long as this lives.
struct OwnStore {
    ScratchFile file{".sqlite"};
    OwnStore() { setenv("LOOPEGG_STORE", file.path().c_str(), 1); }
    ~OwnStore() {
        for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(file.path().string() + end);
        unsetenv("LOOPEGG_STORE");
    }
};

// Whole networks alone are timed here.
class NoMachine final : public Measurer {
public:
    std::vector<Measured> measure(std::span<const Candidate>) override { throw std::logic_error("a nest is timed"); }
};

}  // namespace

TEST_CASE("a site gets one of the schedules that were offered, and the same one again without being timed again", "[flow]") {
    OwnStore own;
    ScratchFile scratch(".trying");
    OptimizeRequest request;
    request.model = shipped("examples/tiny-residual.json");
    ReadNetwork read = read_network(request);
    const Network network = read.network;
    NoMachine machine;
    const TestRun test(request, std::move(read), machine);
    const Run& run = test.run;
    // The default schedule, and close behind it loops as they stand in the statement, which no default schedule is.
    Tuning tuning;
    const std::map<std::string, Term> fused = fused_nests(network.graph, {}, run.target);
    for (const auto& kind : network.sites.kinds) {
        const Term& nest = fused.at(network.sites.all[kind.sites.front()].name);
        TunedNest t;
        t.nest = nest;
        t.also = {nest_of(statement_of(nest_parts(nest).statement))};
        t.best.latency = Latency{1, 0, 1, "host", true, false};
        tuning.best.push_back(t);
    }
    KernelCache kernels;
    const Schedules settled = fastest_in_network(run, network, tuning, scratch.path(), kernels);
    for (const auto& [site, nest] : settled)
        CHECK(std::any_of(tuning.best.begin(), tuning.best.end(), [&](const TunedNest& t) { return t.nest == nest || t.also[0] == nest; }));
    CHECK_FALSE(std::filesystem::exists(scratch.path()));
    const long known = LatencyStore(default_store()).counts().known;
    CHECK(known > 0);
    CHECK(fastest_in_network(run, network, tuning, scratch.path(), kernels) == settled);
    CHECK(LatencyStore(default_store()).counts().known == known);
}
