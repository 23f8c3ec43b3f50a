// What a target's rules make of nests: every schedule computes what the naive nest computes, and a rule that is gone has no effect.
#include <catch2/catch.hpp>

#include "base/files.hpp"
#include "base/places.hpp"
#include "base/scratch.hpp"
#include "base/sexpr.hpp"
#include "nest/domain/domain.hpp"
#include "nest/run/interpreter.hpp"
#include "nest/run/loop_tree.hpp"
#include "nest/schedule/estimate.hpp"
#include "rewrite/site_rules.hpp"

using namespace loopegg;

namespace {

constexpr VectorMachine small{2, 4, 16};
std::vector<std::filesystem::path> shipped_files() { return {shipped("rules/llvm.rules")}; }

Term first_schedule(const char* text, const VectorMachine& machine) { return SiteRules::of(shipped_files(), machine)->schedule(complete(parse_term(text))); }

}  // namespace

TEST_CASE("every schedule that rules give computes what the naive nest computes", "[unit][rewrite]") {
    const auto rules = SiteRules::of(shipped_files(), small);
    for (const char* text : {
             "(nest (conv2d 1 1 8 4 6 8 3 3 1 1 1 1 1 1) (at co (at ci (at oh (at ow (at kh (at kw done)))))))",
             "(nest (conv2d 1 2 8 4 8 8 3 3 2 2 1 1 1 1) (at g (at co (at ci (at oh (at ow (at kh (at kw done))))))))",
             "(nest (conv2d 1 1 8 8 4 4 3 3 1 1 1 1 1 1) (at (diag 8 co ci) (at oh (at ow (at kh (at kw done))))))",
             "(nest (conv2d 1 1 8 8 4 4 1 1 1 1 0 0 1 1) (cat (at (span co 0 4) (at ci (at oh (at ow done)))) (at (span co 4 8) (at (span ci 0 4) (at oh (at ow done))))))",
             "(restore repeat (nest (conv2d 1 1 8 4 4 4 3 3 1 1 1 1 1 1) (at (span co 0 4) (at ci (at oh (at ow (at kh (at kw done))))))))",
             "(nest (conv2d 1 1 8 4 6 7 3 3 1 1 1 1 1 1) (at co (at ci (at (span oh 1 6) (at (span ow 0 6) (at kh (at kw done)))))))",
             "(nest (linear 2 12 7) (at n (at co (at ci done))))",
             "(nest (linear 8 16 32) (at n (at co (at ci done))))",
             "(nest (linear 8 32 64) (at n (at (diag 4 ci co) (at (rem co 8) (at (rem ci 16) done)))))",
             "(nest (zip + 64) (at x done))",
             "(nest (row_softmax 3 8 1) (at r (at x done)))",
             "(nest (row_sum 3 8 1) (at r (at k done)))",
             "(nest (max_pool 1 4 8 8 3 3 2 2 1 1) (at c (at oh (at ow (at kh (at kw done))))))",
             "(nest (epilogue relu (epilogue bias (conv2d 1 1 8 4 4 4 3 3 1 1 1 1 1 1))) (at co (at ci (at oh (at ow (at kh (at kw done)))))))"}) {
        const Term nest = complete(parse_term(text));
        const Buffers buffers = whole_number_buffers(statement_of(nest_parts(nest).statement), 3);
        const auto expected = interpret(nest, buffers);
        const std::vector<Term> all = rules->schedules(nest, 24);
        CHECK(all.size() >= 2);
        double before = 0;
        for (const Term& s : all) {
            CAPTURE(to_string(bare(s)));
            CHECK(domain_of(s) == domain_of(nest));
            CHECK(interpret(s, buffers) == expected);
            if (all[0].op().text() == "nest" && all[0][1].op().text() != "cat") CHECK(schedule_cost(s, small) >= before - 1e-9);   // cheapest first
            before = schedule_cost(s, small);
        }
    }
}

TEST_CASE("a nest whose order must be kept stays as it is", "[unit][rewrite]") {
    const Term nest = complete(parse_term("(nest (recurrence 8 6) (at t (at y done)))"));
    CHECK(SiteRules::of(shipped_files(), small)->schedules(nest, 8) == std::vector{nest});
}

TEST_CASE("the first schedule has a square tile and unrolls some steps of a long sum", "[unit][rewrite]") {
    CHECK(bare(first_schedule("(nest (linear 128 128 128) (at n (at co (at ci done))))", {2, 4, 32})) ==
          parse_term("(nest (linear 128 128 128) (par (quo n 4) (at (quo co 16) (stage O (at (quo ci 4) (unroll (rem ci 4) (unroll (rem n 4) (unroll (rem (quo co 4) 4) (vec (rem co 4) done)))))))))"));
}

TEST_CASE("a tile holds what shares its reads: rows of one group rather than groups", "[unit][rewrite]") {
    CHECK(bare(first_schedule("(nest (linear 128 128 128) (at n (at (diag 8 ci co) (at (rem co 16) (at (rem ci 16) done)))))", {2, 4, 32})) ==
          parse_term("(nest (linear 128 128 128) (par (diag 8 ci co) (at (quo n 4) (stage O (at (quo (rem ci 16) 4) (unroll (rem (rem ci 16) 4) (unroll (rem n 4) (unroll (quo (rem co 16) 4) (vec (rem (rem co 16) 4) done)))))))))"));
}

TEST_CASE("schedules near one visit the same instances in another way", "[unit][rewrite]") {
    const VectorMachine machine{2, 8, 32};
    const auto rules = SiteRules::of(shipped_files(), machine);
    const TermCost estimate = [&](std::span<const Term> nests) {
        std::vector<double> all;
        for (const Term& n : nests) all.push_back(schedule_cost(n, machine));
        return all;
    };
    for (const char* text : {"(nest (conv2d 1 1 16 8 8 8 3 3 1 1 1 1 1 1) (at co (at ci (at oh (at ow (at kh (at kw done)))))))",
                             "(restore repeat (nest (conv2d 1 1 16 3 16 16 3 3 1 1 1 1 1 1) (at (span (quo co 4) 0 1) (at (rem co 4) (at ci (at oh (at ow (at kh (at kw done)))))))))",
                             "(nest (conv2d 1 1 16 8 8 8 3 3 1 1 1 1 1 1) (at (diag 4 co ci) (at (rem co 4) (at (rem ci 2) (at oh (at ow (at kh (at kw done))))))))"}) {
        const Term nest = complete(parse_term(text));
        for (const Term& start : rules->schedules(nest, 3)) {
            INFO(to_string(start));
            const std::vector<Term> near = rules->near(start, estimate, {.evaluations = 150}, 12);
            CHECK(near.size() >= 4);
            for (const Term& t : near) {
                INFO(to_string(t));
                CHECK(t != start);
                CHECK(domain_of(t) == domain_of(start));
                CHECK_NOTHROW(resolve(t));
            }
            CHECK(near == rules->near(start, estimate, {.evaluations = 150}, 12));   // one seed, one answer
        }
    }
}

TEST_CASE("a rule that is not in the user's file has no effect on schedules", "[unit][rewrite]") {
    const ScratchFolder folder(std::filesystem::temp_directory_path() / "loopegg-own-rules");
    const Term nest = complete(parse_term("(nest (linear 16 32 64) (at n (at co (at ci done))))"));
    const auto with = [&](const std::string& name, const std::string& rules) {
        write_file(folder.path() / name, "(language nest)\n(ruleset own\n" + rules + ")\n(phase schedule :rules own :iterations 1)\n");
        std::string all;
        for (const Term& t : SiteRules({folder.path() / name, shipped("rules/llvm.rules")}, small).schedules(nest, 20)) all += to_string(bare(t)) + "\n";
        return all;
    };
    const std::string tiles = "(rule own-tiles (nest ?n ?s) => (nest ?n (at (outer ?n ?s ?t) (at (reductions ?n ?s) (at (inner ?n ?s ?t) (at (lanes ?n ?s ?t) done))))) :for ?t (register-tiles ?n ?s 3))\n";
    const std::string lanes = "(rule own-lanes (nest ?n ?s) => (nest ?n (at (but-last (outputs ?n ?s)) (at (reductions ?n ?s) (vec (last (outputs ?n ?s)) done)))))\n";
    const std::string both = with("both.rules", tiles + lanes), tiled = with("tiled.rules", tiles), vectors = with("vectors.rules", lanes);
    CHECK_THAT(both, Catch::Contains("(quo ") && Catch::Contains("(vec "));
    CHECK_THAT(tiled, Catch::Contains("(quo ") && !Catch::Contains("(vec "));
    CHECK_THAT(vectors, !Catch::Contains("(quo ") && Catch::Contains("(vec "));
    CHECK_THAT(both, !Catch::Contains("(par "));   // that is for rules of the shipped file, whose phase is not used
}

TEST_CASE("a rule that is not in the user's file fuses nothing", "[unit][rewrite]") {
    const ScratchFolder folder(std::filesystem::temp_directory_path() / "loopegg-own-fusion");
    const Term conv = complete(parse_term("(nest (conv2d 1 1 4 2 3 3 1 1 1 1 0 0 1 1) (at co (at oh (at ow (at ci done)))))"));
    const Term add = nest_of(statement_of(parse_term("(zip + 36)"))), relu = nest_of(statement_of(parse_term("(map relu 36)")));
    write_file(folder.path() / "own.rules",
               "(language nest)\n(ruleset own (rule own-activation (then (site (nest ?n ?s)) (nest (map ?f ?x) ?t)) => (site (nest (epilogue ?f ?n) ?s)) :when (epilogue-function ?f) (beyond-map ?n)))\n"
               "(phase fuse :rules own :iterations 4)\n");
    const SiteRules own({folder.path() / "own.rules", shipped("rules/llvm.rules")}, small), usual(shipped_files(), small);
    const Term added("then", {Term("site", {conv}), add}), rectified("then", {Term("site", {conv}), relu});
    CHECK(own.fuse(added).empty());
    REQUIRE(usual.fuse(added).size() == 1);
    CHECK(usual.fuse(added)[0].rule == "fuse-add");
    REQUIRE(own.fuse(rectified).size() == 1);
    CHECK(own.fuse(rectified)[0].rule == "own-activation");
    CHECK(own.fuse(rectified)[0].value == usual.fuse(rectified)[0].value);
}

TEST_CASE("a binding that is not in the user's file is in no schedule of a graphics processor", "[unit][rewrite]") {
    const ScratchFolder folder(std::filesystem::temp_directory_path() / "loopegg-own-bindings");
    const VectorMachine graphics{28, 128, 32, true};
    const Term nest = complete(parse_term("(nest (conv2d 1 1 64 64 16 16 3 3 1 1 1 1 1 1) (at co (at ci (at oh (at ow (at kh (at kw done)))))))"));
    write_file(folder.path() / "own.rules", "(language nest)\n(ruleset own (rule own-blocks (nest ?n ?s) => (nest ?n (bind blockIdx.x (fused (outputs ?n ?s)) (stage O (at (reductions ?n ?s) done))))))\n"
                                            "(phase schedule :rules own :iterations 1)\n");
    const std::string own = to_string(SiteRules({folder.path() / "own.rules", shipped("rules/cuda.rules")}, graphics).schedule(nest));
    const std::string usual = to_string(SiteRules({shipped("rules/cuda.rules")}, graphics).schedule(nest));
    CHECK_THAT(own, Catch::Contains("blockIdx.x") && !Catch::Contains("threadIdx"));
    CHECK_THAT(usual, Catch::Contains("blockIdx.x") && Catch::Contains("threadIdx.x") && Catch::Contains("(stage (shared W)"));
}

TEST_CASE("schedules for graphics processors compute what the naive nest computes", "[unit][rewrite]") {
    const SiteRules rules({shipped("rules/cuda.rules")}, {4, 32, 32, true});
    for (const char* text : {"(nest (conv2d 1 1 16 8 8 8 3 3 1 1 1 1 1 1) (at co (at ci (at oh (at ow (at kh (at kw done)))))))",
                             "(nest (conv2d 1 1 16 8 8 8 3 3 1 1 1 1 1 1) (at (diag 2 co ci) (at (rem co 8) (at (rem ci 4) (at oh (at ow (at kh (at kw done))))))))",
                             "(nest (conv2d 1 1 16 8 8 8 3 3 1 1 1 1 1 1) (cat (at (span co 0 8) (at ci (at oh (at ow (at kh (at kw done)))))) (at (span co 8 16) (at (span ci 0 4) (at oh (at ow (at kh (at kw done))))))))",
                             "(restore repeat (nest (conv2d 1 1 16 8 8 8 3 3 1 1 1 1 1 1) (at (quo co 4) (at (span (rem co 4) 0 2) (at ci (at oh (at ow (at kh (at kw done)))))))))",
                             "(nest (linear 3 10 7) (at n (at co (at ci done))))", "(nest (max_pool 1 3 6 6 3 3 2 2 1 1) (at c (at oh (at ow (at kh (at kw done))))))"}) {
        const Term nest = complete(parse_term(text));
        const Buffers buffers = whole_number_buffers(statement_of(nest_parts(nest).statement), 3);
        for (const Term& s : rules.schedules(nest, 8)) {
            CAPTURE(to_string(bare(s)));
            CHECK(domain_of(s) == domain_of(nest));
            CHECK(interpret(s, buffers) == interpret(nest, buffers));
            CHECK_THAT(to_string(s), Catch::Contains("blockIdx") || Catch::Contains("threadIdx"));
        }
    }
}
