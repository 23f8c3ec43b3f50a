// Neighbours of a schedule: other schedules of the same instances.
#include <catch2/catch.hpp>

#include "base/places.hpp"
#include "base/sexpr.hpp"
#include "nest/domain/domain.hpp"
#include "nest/term/grammar.hpp"
#include "nest/run/loop_tree.hpp"
#include "nest/schedule/sketch.hpp"
#include "optimize/neighbours.hpp"
#include "rules/load.hpp"

using namespace loopegg;

TEST_CASE("neighbours of a schedule visit the same instances in another way", "[unit][optimize]") {
    const RuleBook book = load_rules(shipped("rules/tune-cpu.rules"));
    const Phase* refine = book.find_phase("refine");
    REQUIRE(refine);
    for (const char* text :
         {"(nest (conv2d 1 1 16 8 8 8 3 3 1 1 1 1 1 1) (at co (at ci (at oh (at ow (at kh (at kw done)))))))",
          "(restore repeat (nest (conv2d 1 1 16 3 16 16 3 3 1 1 1 1 1 1) (at (span (quo co 4) 0 1) (at (rem co 4) (at ci (at oh (at ow (at kh (at kw "
          "done)))))))))",
          "(nest (conv2d 1 1 16 8 8 8 3 3 1 1 1 1 1 1) (at (diag 4 co ci) (at (rem co 4) (at (rem ci 2) (at oh (at ow (at kh (at kw done))))))))"}) {
        const Term nest = complete(parse_term(text));
        for (const Term& start : sketches(nest, {2, 8, 32}, 6)) {
            INFO(to_string(start));
            const std::vector<Term> near = neighbours(start, book, *refine, 1, 12);
            CHECK(near.size() >= 4);
            for (const Term& t : near) {
                INFO(to_string(t));
                CHECK(t != start);
                CHECK(domain_of(t) == domain_of(start));
                CHECK_NOTHROW(resolve(t));
            }
            CHECK(near == neighbours(start, book, *refine, 1, 12));   // one seed, one answer
        }
    }
}
