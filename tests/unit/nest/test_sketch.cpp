#include <catch2/catch.hpp>

#include "base/sexpr.hpp"
#include "nest/domain/domain.hpp"
#include "nest/run/interpreter.hpp"
#include "nest/schedule/sketch.hpp"

using namespace loopegg;

TEST_CASE("every sketch computes what the naive nest computes", "[unit][nest]") {
    for (const char* text :
         {"(nest (conv2d 1 1 8 4 6 8 3 3 1 1 1 1 1 1) (at co (at ci (at oh (at ow (at kh (at kw done)))))))",
          "(nest (conv2d 1 2 8 4 8 8 3 3 2 2 1 1 1 1) (at g (at co (at ci (at oh (at ow (at kh (at kw done))))))))",
          "(nest (conv2d 1 1 8 8 4 4 3 3 1 1 1 1 1 1) (at (diag 8 co ci) (at oh (at ow (at kh (at kw done))))))",
          "(nest (conv2d 1 1 8 8 4 4 1 1 1 1 0 0 1 1) (cat (at (span co 0 4) (at ci (at oh (at ow done)))) (at (span co 4 8) (at (span ci 0 4) (at oh (at ow "
          "done))))))",
          "(restore repeat (nest (conv2d 1 1 8 4 4 4 3 3 1 1 1 1 1 1) (at (span co 0 4) (at ci (at oh (at ow (at kh (at kw done))))))))",
          "(nest (linear 2 12 7) (at n (at co (at ci done))))", "(nest (linear 8 16 32) (at n (at co (at ci done))))",
          "(nest (linear 8 32 64) (at n (at (diag 4 ci co) (at (rem co 8) (at (rem ci 16) done)))))", "(nest (zip + 64) (at x done))",
          "(nest (epilogue relu (epilogue bias (conv2d 1 1 8 4 4 4 3 3 1 1 1 1 1 1))) (at co (at ci (at oh (at ow (at kh (at kw done)))))))"}) {
        const Term nest = complete(parse_term(text));
        const Statement statement = statement_of(nest_parts(nest).statement);
        const Buffers buffers = whole_number_buffers(statement, 3);
        const auto expected = interpret(nest, buffers);
        const auto all = sketches(nest, {2, 4, 16}, 24);
        CHECK(all.size() >= 1);
        for (const Term& s : all) {
            CAPTURE(to_string(bare(s)));
            CHECK(domain_of(s) == domain_of(nest));
            CHECK(interpret(s, buffers) == expected);
        }
    }
}

namespace {

Term best_sketch(const char* text) { return sketches(complete(parse_term(text)), {2, 4, 32}, 24).front(); }

}  // namespace

TEST_CASE("the first sketch has a square tile and unrolls some steps of a long sum", "[unit][nest]") {
    CHECK(bare(best_sketch("(nest (linear 128 128 128) (at n (at co (at ci done))))")) ==
          parse_term("(nest (linear 128 128 128) (par (quo n 4) (at (quo co 16) (stage O (at (quo ci 4) (unroll (rem ci 4) (unroll (rem n 4) (unroll (rem (quo "
                     "co 4) 4) (vec (rem co 4) done)))))))))"));
}

TEST_CASE("a tile holds what shares its reads: rows of one group rather than groups", "[unit][nest]") {
    CHECK(bare(best_sketch("(nest (linear 128 128 128) (at n (at (diag 8 ci co) (at (rem co 16) (at (rem ci 16) done)))))")) ==
          parse_term("(nest (linear 128 128 128) (par (diag 8 ci co) (at (quo n 4) (stage O (at (quo (rem ci 16) 4) (unroll (rem (rem ci 16) 4) (unroll (rem n "
                     "4) (unroll (quo (rem co 16) 4) (vec (rem (rem co 16) 4) done)))))))))"));
}
