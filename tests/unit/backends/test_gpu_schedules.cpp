// Schedules that the rules give for graphics processors, whole nests and restricted ones: their text gives the reference's output, emulated on the CPU.
#include <catch2/catch.hpp>

#include <cstdlib>

#include "backends/kernel/cuda_emulator.hpp"
#include "backends/kernel/kernel.hpp"
#include "backends/kernel/loaded_kernel.hpp"
#include "backends/kernel/reference.hpp"
#include "backends/target/target_rules.hpp"
#include "base/error.hpp"
#include "base/sexpr.hpp"
#include "nest/term/grammar.hpp"

using namespace loopegg;

namespace {

constexpr const char* nests[]{
    "(nest (epilogue relu (epilogue bias (conv2d 1 1 16 16 4 4 3 3 1 1 1 1 1 1))) (at co (at ci (at oh (at ow (at kh (at kw done)))))))",
    "(nest (conv2d 1 1 16 8 8 8 3 3 2 2 1 1 1 1) (at co (at ci (at oh (at ow (at kh (at kw done)))))))",
    "(nest (conv2d 2 1 8 16 4 4 1 1 1 1 0 0 1 1) (at n (at co (at ci (at oh (at ow done))))))",
    "(nest (conv2d 1 8 1 1 8 8 3 3 1 1 1 1 1 1) (at g (at oh (at ow (at kh (at kw done))))))",
    "(nest (epilogue bias (linear 4 24 32)) (at n (at co (at ci done))))",
    "(nest (max_pool 1 4 8 8 3 3 2 2 1 1) (at n (at c (at oh (at ow (at kh (at kw done)))))))",
    "(restore repeat (nest (conv2d 1 1 16 16 4 4 3 3 1 1 1 1 1 1) (at (span co 0 8) (at ci (at oh (at ow (at kh (at kw done))))))))",
    "(nest (conv2d 1 1 16 16 4 4 3 3 1 1 1 1 1 1) (at (diag 2 co ci) (at (rem co 8) (at (rem ci 8) (at oh (at ow (at kh (at kw done))))))))",
};

std::string emulated(const Term& nest, const Target& target) {
    const Statement s = statement_of(nest_parts(nest).statement);
    const Kernel kernel = compile_nest(nest, target, "k");
    const auto operands = sample_operands(s, 7);
    return difference(s, kernel_output(kernel, operands, [&](std::span<float* const> buffers) { emulate_cuda(kernel, buffers); }),
                      reference_output(nest, operands));
}

}  // namespace

TEST_CASE("schedules that rules give for GPUs are right, emulated", "[rules]") {
    const bool deep = std::getenv("LOOPEGG_DEEP") != nullptr;
    const std::size_t of_each = deep ? 25 : 1;  // 200 for each processor; otherwise one of every second nest
    std::size_t turn = 0;
    for (const char* name : {"nano", "gtx1080ti"}) {
        ++turn;
        const Target target = find_target(name);
        int refused = 0, shared_sums = 0;
        for (const char* text : nests) {
            if (++turn % 2 == 0 && !deep) continue;
            const std::vector<Term> all = schedule_rules(target)->schedules(complete(parse_term(text)), 2 * of_each);
            for (std::size_t i = 0; i < all.size(); i += 2) {
                CAPTURE(name, to_string(bare(all[i])));
                shared_sums += to_string(all[i]).find("(partial threadIdx") != std::string::npos;
                try {
                    CHECK(emulated(all[i], target) == "");
                } catch (const UserError& e) {
                    ++refused;
                    WARN("refused: " << e.what() << " in " << to_string(bare(all[i])));
                }
            }
        }
        CHECK(refused == 0);
        if (of_each > 1) CHECK(shared_sums > 0);
    }
}
