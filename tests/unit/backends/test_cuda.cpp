// CUDA kernels and GPU schedules, run by the emulator.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <cstdlib>

#include "backends/kernel/cuda_emulator.hpp"
#include "backends/kernel/kernel.hpp"
#include "backends/kernel/loaded_kernel.hpp"
#include "backends/kernel/reference.hpp"
#include "backends/lower/default_schedule.hpp"
#include "backends/target/target_rules.hpp"
#include "base/error.hpp"
#include "base/sexpr.hpp"
#include "nest/term/grammar.hpp"

using namespace loopegg;

namespace {

void check(const Term& given) {
    CAPTURE(to_string(bare(given)));
    const Term nest = complete(given);
    const Statement s = statement_of(nest_parts(nest).statement);
    const Kernel kernel = compile_nest(nest, find_target("gtx1080ti"), "k");
    const auto operands = sample_operands(s, 5);
    const auto got = kernel_output(kernel, operands, [&](std::span<float* const> buffers) { emulate_cuda(kernel, buffers); });
    CHECK(difference(s, got, reference_output(nest, operands)) == "");
}

}  // namespace

TEST_CASE("CUDA text computes what its nest says, emulated on the CPU", "[flow]") {
    const Target gpu = find_target("gtx1080ti");
    for (const char* statement : {"(epilogue relu (epilogue bias (conv2d 1 1 16 8 8 8 3 3 1 1 1 1 1 1)))", "(conv2d 1 2 8 8 9 9 3 3 2 2 1 1 1 1)",
                                  "(conv2d 1 6 1 1 7 7 3 3 1 1 1 1 1 1)", "(linear 3 10 7)", "(max_pool 1 3 6 6 3 3 2 2 1 1)", "(zip + 100)"})
        check(default_nest(statement_of(parse_term(statement)), gpu));
}

TEST_CASE("threads that are bound inside shared tiles keep their own accumulators", "[flow]") {
    check(
        parse_term("(nest (conv2d 1 1 16 8 8 8 3 3 1 1 1 1 1 1) (bind blockIdx.x (quo co 8) (stage O (at (quo ci 4) (stage (shared I) (stage (shared W) (bind "
                   "threadIdx.y (quo (rem co 8) 2)"
                   " (bind threadIdx.x (pair (quo oh 2) ow) (at (rem ci 4) (unroll kh (unroll kw (unroll (rem co 2) (unroll (rem oh 2) done)))))))))))))"));
    check(parse_term("(nest (conv2d 1 1 8 4 6 6 3 3 1 1 1 1 1 1) (at ci (bind blockIdx.x co (bind threadIdx.x (pair oh ow) (at kh (at kw done))))))"));
    check(parse_term("(nest (conv2d 1 1 8 4 6 6 3 3 1 1 1 1 1 1) (at co (at ci (at oh (at ow (at kh (at kw done)))))))"));
}

TEST_CASE("tiles that are staged ahead are fetched before they are needed", "[flow]") {
    const std::string loops =
        "(at (quo ci 2) (stage (ahead I) (stage (ahead W) (bind threadIdx.y (quo (rem co 8) 2) (bind threadIdx.x (pair (quo oh 2) ow)"
        " (at (rem ci 2) (unroll kh (unroll kw (unroll (rem co 2) (unroll (rem oh 2) done))))))))))";
    const std::string nest = "(nest (conv2d 1 1 16 8 8 8 3 3 1 1 1 1 1 1) (bind blockIdx.x (quo co 8) (stage O " + loops + ")))";
    check(parse_term(nest));
    const std::string code = compile_nest(complete(parse_term(nest)), find_target("gtx1080ti"), "k").code;
    CHECK(code.find("kept") != std::string::npos);
    // The fetch of the next tiles stands between what puts these down and the barrier behind which they are used.
    const std::size_t loop = code.find("for (int v"), next = code.find("kept", loop);
    CHECK(next < code.find("__syncthreads()", next));
    check(
        parse_term("(nest (conv2d 1 1 8 16 4 4 3 3 1 1 1 1 1 1) (bind blockIdx.x (quo co 4) (partial threadIdx.z (quo ci 4) (stage O (at (quo (rem ci 4) 2) "
                   "(stage (ahead I) (stage (ahead W) (bind threadIdx.y (rem co 4) (bind threadIdx.x (pair oh ow) (at (rem ci 2) (unroll kh (unroll kw "
                   "done))))))))))))"));
    // Four at once, and a last round that not all threads have.
    check(
        parse_term("(nest (conv2d 1 1 16 24 6 6 1 1 1 1 0 0 1 1) (bind blockIdx.x (quo co 8) (stage O (at (quo ci 8) (stage (ahead I) (stage (ahead W)"
                   " (bind threadIdx.y (rem co 8) (bind threadIdx.x ow (at (rem ci 8) (unroll oh done))))))))))"));
    // Without a loop around them there is nothing to come.
    check(parse_term("(nest (linear 2 8 16) (bind blockIdx.x n (stage O (stage (ahead I) (stage (ahead W) (bind threadIdx.x co (at ci done)))))))"));
}

TEST_CASE("threads share a sum: each works out a part, and the parts are added up in shared memory", "[flow]") {
    check(
        parse_term("(nest (conv2d 1 1 8 16 4 4 3 3 1 1 1 1 1 1) (bind blockIdx.x (quo co 4) (partial threadIdx.z (quo ci 4) (stage O (at (quo (rem ci 4) 2) "
                   "(stage (shared I) (stage (shared W)"
                   " (bind threadIdx.y (rem co 4) (bind threadIdx.x (pair oh ow) (at (rem ci 2) (unroll kh (unroll kw done))))))))))))"));
    check(
        parse_term("(nest (epilogue relu (epilogue bias (linear 2 6 32))) (bind blockIdx.x n (partial threadIdx.z (quo ci 8) (stage O (bind threadIdx.x co (at "
                   "(rem ci 8) done))))))"));
    check(
        parse_term("(restore repeat (nest (epilogue bias (conv2d 1 1 8 16 4 4 1 1 1 1 0 0 1 1)) (bind blockIdx.x (span co 0 4) (partial threadIdx.y (quo ci 4) "
                   "(stage O (bind threadIdx.x (pair oh ow) (at (rem ci 4) done)))))))"));
    const auto refused = parse_term("(nest (linear 2 6 32) (bind blockIdx.x n (partial threadIdx.z (quo ci 8) (bind threadIdx.x co (at (rem ci 8) done)))))");
    CHECK_THROWS_WITH(compile_nest(complete(refused), find_target("gtx1080ti"), "k"), Catch::Contains("need a stage of O just inside"));
}

TEST_CASE("weights that lie in the order of their visits are copied four at once", "[flow]") {
    const Term nest = parse_term(
        "(nest (conv2d 1 1 16 8 8 8 1 1 1 1 0 0 1 1) (bind blockIdx.x (quo co 8) (stage O (at (quo ci 4) (stage (shared I) (stage (shared W)"
        " (bind threadIdx.y (rem co 8) (bind threadIdx.x (pair oh ow) (at (rem ci 4) done)))))))))");
    check(nest);
    CHECK_THAT(compile_nest(complete(nest), find_target("gtx1080ti"), "k").code, Catch::Contains("float4"));
}

TEST_CASE("threads that have nothing to do in a part of a nest read nothing there", "[flow]") {
    const auto part = [](const char* channels, const char* inputs, int threads) {
        return fmt::format(
            "(bind blockIdx.x oh (stage O (stage (shared I) (stage (shared W) (bind threadIdx.y (quo {0} {2}) (bind threadIdx.x ow (at {1} (at kh (at kw "
            "(unroll (rem {0} {2}) done)))))))))) ",
            channels, inputs, threads);
    };
    const Term nest =
        parse_term("(nest (conv2d 1 1 16 8 8 8 3 3 1 1 1 1 1 1) (cat " + part("(span co 0 8)", "ci", 4) + part("(span co 8 16)", "(span ci 0 4)", 2) + "))");
    check(nest);
    const std::string code = compile_nest(complete(nest), find_target("gtx1080ti"), "k").code;
    CHECK_THAT(code, Catch::Contains("((int)threadIdx.y) < 2"));  // the first part has two, the second four
    const std::size_t sum = code.find("acc0_ptr[0] = (acc0_ptr[0] +");
    CHECK(code.find("if (((int)threadIdx.y) < 2)") < sum);
    CHECK(code.rfind("if (((int)threadIdx.y) < 2)", sum) > code.rfind("__syncthreads()", sum));  // the sums themselves stand behind it
}

TEST_CASE("missing outputs come back on GPUs, written by the threads that computed their sources", "[flow]") {
    const std::string bias = "(epilogue relu (epilogue bias (conv2d 1 1 8 4 6 6 3 3 1 1 1 1 1 1)))";
    check(parse_term("(restore repeat (nest " + bias +
                     " (bind blockIdx.x (span co 0 4) (bind threadIdx.x (pair oh ow) (stage O (at ci (at kh (at kw done))))))))"));
    check(parse_term("(restore zero (nest " + bias +
                     " (bind blockIdx.x (span co 0 3) (bind threadIdx.x (pair oh ow) (stage O (at ci (at kh (at kw done))))))))"));
    check(parse_term("(restore repeat (nest " + bias +
                     " (bind blockIdx.x co (at ci (bind threadIdx.y (quo oh 2) (bind threadIdx.x ow (at (span (rem oh 2) 0 1) (at kh (at kw done)))))))))"));
    const Target gpu = find_target("gtx1080ti");
    check(arrange(parse_term("(restore repeat (nest (conv2d 1 1 16 8 8 8 3 3 1 1 1 1 1 1) (at (span co 0 8) (at ci (at oh (at ow (at kh (at kw done))))))))"),
                  gpu));
    // Channels in two pieces: both are bound or unrolled, none is lost.
    const Term pieces = arrange(parse_term("(restore repeat (nest (conv2d 1 1 64 8 8 8 3 3 1 1 1 1 1 1) (at (quo co 16) (at (span (rem co 16) 0 4) (at ci (at "
                                           "oh (at ow (at kh (at kw done)))))))))"),
                                gpu);
    CHECK(to_string(pieces).find("threadIdx") != std::string::npos);
    check(pieces);
}

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
