// Random terms on all six targets: compiled for each, equal to the reference bit for bit on this machine.
#include <catch2/catch.hpp>

#include <cstdlib>
#include <map>

#include "backends/kernel/cuda_emulator.hpp"
#include "backends/kernel/elf_object.hpp"
#include "backends/kernel/loaded_kernel.hpp"
#include "backends/kernel/reference.hpp"
#include "backends/lower/nvrtc.hpp"
#include "backends/lower/random_nest.hpp"
#include "base/error.hpp"

using namespace loopegg;

namespace {

int deep(int full, int few) { return std::getenv("LOOPEGG_DEEP") ? full : few; }

std::string run(const Term& given, const Target& target, bool emulated) {
    const Term nest = complete(given);
    const Statement s = statement_of(nest_parts(nest).statement);
    const Kernel kernel = compile_nest(nest, target, "k");
    const auto operands = sample_operands(s, 11);
    const auto got =
        kernel_output(kernel, operands, [&](std::span<float* const> buffers) { emulated ? emulate_cuda(kernel, buffers) : LoadedKernel{kernel}(buffers); });
    return difference(s, got, reference_output(nest, operands));
}

}  // namespace

TEST_CASE("random terms give the reference's output on this machine", "[rules]") {
    const Target host = find_target("host");
    int refused = 0;
    const int count = deep(2000, 60);
    for (int i = 0; i < count; ++i) {
        const Term nest = random_nest(static_cast<std::uint64_t>(i), false);
        CAPTURE(i, to_string(bare(nest)));
        try {
            CHECK(run(nest, host, false) == "");
        } catch (const UserError& e) {
            ++refused;
            WARN("refused: " << e.what() << " in " << to_string(bare(nest)));
        }
    }
    CHECK(refused <= count / 100);
}

TEST_CASE("random terms compile for every other target to its own machine code", "[rules]") {
    const int count = deep(2000, 8);
    for (const char* name : {"i7", "a57", "gtx1080ti", "nano", "h200"}) {
        const Target target = find_target(name);
        int refused = 0;
        for (int i = 0; i < count; ++i) {
            const Term nest = random_nest(static_cast<std::uint64_t>(i), target.gpu());
            CAPTURE(name, i, to_string(bare(nest)));
            try {
                const Kernel k = compile_nest(nest, target, "k");
                CHECK(elf_architecture(target.gpu() ? make_cubin(k.code, target.architecture()) : k.code) == target.architecture());
            } catch (const UserError& e) {
                ++refused;
                WARN("refused: " << e.what() << " in " << to_string(bare(nest)));
            }
        }
        CHECK(refused <= count / 20);
    }
}

TEST_CASE("random terms for GPUs give the reference's output when their text is emulated", "[rules]") {
    const Target gpu = find_target("gtx1080ti");
    for (int i = 0; i < deep(100, 4); ++i) {
        const Term nest = random_nest(static_cast<std::uint64_t>(i), true);
        CAPTURE(i, to_string(bare(nest)));
        try {
            CHECK(run(nest, gpu, true) == "");
        } catch (const UserError& e) {
            WARN("refused: " << e.what() << " in " << to_string(bare(nest)));
        }
    }
}
