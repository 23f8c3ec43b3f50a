#include <catch2/catch.hpp>

#include "base/sexpr.hpp"
#include "nest/judge/isl_judge.hpp"
#include "nest/term/facts.hpp"

using namespace loopegg;

namespace {
const std::string conv = "(conv2d 1 1 8 4 6 6 3 3 1 1 1 1 1 1)";
std::string judged(const std::string& stmt, const std::string& sched, JudgeOptions options = {}) {
    return isl_judge(complete(parse_term("(nest " + stmt + " " + sched + ")")), options).value_or("sound");
}
}  // namespace

TEST_CASE("isl accepts schedules of the whole domain and names what is wrong with others", "[unit]") {
    CHECK(judged(conv, "(at co (at ci (at oh (at ow (at kh (at kw done))))))") == "sound");
    CHECK(judged(conv, "(par (pair (quo co 3) oh) (at ci (at kh (at kw (at (rem co 3) (vec ow done))))))") == "sound");
    CHECK(
        judged(conv, "(cat (at (span co 0 3) (at ci (at oh (at ow (at kh (at kw done)))))) (at (span co 3 8) (at ci (at oh (at ow (at kh (at kw done)))))))") ==
        "sound");
    CHECK_THAT(judged(conv, "(at (span co 0 3) (at ci (at oh (at ow (at kh (at kw done))))))"), Catch::Contains("leaves instances out"));
    CHECK_THAT(
        judged(conv, "(cat (at (span co 0 4) (at ci (at oh (at ow (at kh (at kw done)))))) (at (span co 3 8) (at ci (at oh (at ow (at kh (at kw done)))))))"),
        Catch::Contains("twice"));
    CHECK_THAT(judged(conv, "(at (quo co 2) (at ci (at oh (at ow (at kh (at kw done))))))"), Catch::Contains("in no loop"));
    CHECK_THAT(judged(conv, "(at co (par ci (at oh (at ow (at kh (at kw done))))))"), Catch::Contains("at once"));
    CHECK(judged(conv, "(par (diag 4 co ci) (at (rem co 2) (at oh (at ow (at kh (at kw done))))))", {.may_restrict = true}) == "sound");
    CHECK(judged("(recurrence 4 5)", "(at t (at y done))") == "sound");
    CHECK_THAT(judged("(recurrence 4 5)", "(at y (at t done))"), Catch::Contains("reverses a dependence"));
    CHECK_THAT(judged("(recurrence 4 5)", "(par t (at y done))"), Catch::Contains("at once"));
    CHECK(judged("(recurrence 4 6)", "(at t (at (quo y 2) (at (rem y 2) done)))") == "sound");
}

TEST_CASE("strict sums keep their order", "[unit]") {
    CHECK(judged(conv, "(at oh (at co (at ow (at ci (at kh (at kw done))))))", {.strict_fp = true}) == "sound");
    CHECK(judged(conv, "(at ci (at oh (at co (at ow (at kh (at kw done))))))", {.strict_fp = true}) == "sound");
    CHECK_THAT(judged(conv, "(at co (at kh (at ci (at oh (at ow (at kw done))))))", {.strict_fp = true}), Catch::Contains("another order"));
    CHECK_THAT(judged(conv, "(at co (partial par ci (at oh (at ow (at kh (at kw done))))))", {.strict_fp = true}), Catch::Contains("another order"));
}

TEST_CASE("a class knows what its schedules enumerate, however they are written", "[unit]") {
    EGraph graph;
    auto facts = std::make_shared<NestAnalysis>();
    graph.attach(facts);
    auto open = [&](const char* sched) {
        ClassId c = graph.find(graph.add(parse_term(sched)));
        const ScheduleFact* f = facts->schedule(c);
        return f ? std::pair(f->open.size(), f->instances) : std::pair(std::size_t{0}, 0.0);
    };
    CHECK(open("(at (quo co:64 16) (at (rem co:64 16) done))") == std::pair(std::size_t{1}, 64.0));
    CHECK(open("(at (rem co:64 16) (at (rem ci:64 16) done))") == std::pair(std::size_t{2}, 256.0));
    CHECK(open("(at (diag 4 co:64 ci:64) (at (rem co:64 16) (at (rem ci:64 16) done)))") == std::pair(std::size_t{2}, 1024.0));
    CHECK(open("(at co:64 (at co:64 done))") == std::pair(std::size_t{0}, 0.0));
    auto merge = [&](const char* a, const char* b) {
        ClassId x = graph.add(parse_term(a)), y = graph.add(parse_term(b));
        try {
            graph.merge(x, y, "a test");
            graph.rebuild();
            return std::string("merged");
        } catch (const std::exception& e) {
            return std::string(e.what());
        }
    };
    CHECK(merge("(at co:8 (at ci:4 done))", "(at ci:4 (at (quo co:8 2) (at (rem co:8 2) done)))") == "merged");
    CHECK(merge("(at co:8 done)", "(cat (at (span co:8 0 3) done) (at (span co:8 3 8) done))") == "merged");
    CHECK(merge("(pair oh:8 ow:8)", "(pair (pair oh:8 (quo ow:8 2)) (rem ow:8 2))") == "merged");
    CHECK_THAT(merge("(at co:8 (at ci:4 done))", "(at co:8 done)"), Catch::Contains("different digits"));
    CHECK_THAT(merge("(at co:8 done)", "(at (span co:8 0 4) done)"), Catch::Contains("different instances"));
    CHECK_THAT(merge("(quo co:8 2)", "(quo co:8 4)"), Catch::Contains("is not"));
}
