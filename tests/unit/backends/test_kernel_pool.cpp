#include <catch2/catch.hpp>

#include "backends/kernel/kernel_cache.hpp"
#include "backends/measure/tvm_measurer.hpp"
#include "base/sexpr.hpp"
#include "nest/domain/domain.hpp"

using namespace loopegg;

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
