#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>

#include "backends/kernel/kernel_cache.hpp"
#include "backends/measure/latency_store.hpp"
#include "base/places.hpp"
#include "base/scratch.hpp"
#include "nest/term/grammar.hpp"
#include "optimize/stages.hpp"

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

}  // namespace

TEST_CASE("a site gets one of the schedules that were offered, and the same one again without being timed again", "[flow]") {
    OwnStore own;
    ScratchFile scratch(".trying");
    OptimizeRequest request;
    request.model = shipped("examples/tiny-residual.json");
    const Input input = read_input(request);
    const Target target = find_target("host");
    // The default schedule, and close behind it loops as they stand in the statement, which no default schedule is.
    Tuning tuning;
    const std::map<std::string, Term> fused = fused_nests(input.graph, {}, target);
    for (const auto& kind : input.sites.kinds) {
        const Term& nest = fused.at(input.sites.all[kind.sites.front()].name);
        TunedNest t;
        t.nest = nest;
        t.also = {nest_of(statement_of(nest_parts(nest).statement))};
        t.best.latency = Latency{1, 0, 1, "host", true, false};
        tuning.best.push_back(t);
    }
    const auto variant = original_variants(input.sites);
    KernelCache kernels;
    const TunedNetwork network{input.graph, input.weights, input.sites, tuning, variant};
    const Schedules settled = fastest_in_network(network, target, scratch.path(), kernels);
    for (const auto& [site, nest] : settled)
        CHECK(std::any_of(tuning.best.begin(), tuning.best.end(), [&](const TunedNest& t) { return t.nest == nest || t.also[0] == nest; }));
    CHECK_FALSE(std::filesystem::exists(scratch.path()));
    const long known = LatencyStore(default_store()).counts().known;
    CHECK(known > 0);
    CHECK(fastest_in_network(network, target, scratch.path(), kernels) == settled);
    CHECK(LatencyStore(default_store()).counts().known == known);
}
