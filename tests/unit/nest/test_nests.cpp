// Axes, typed rule applications, legality according to isl, and loop trees.
#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/sexpr.hpp"
#include "nest/domain/domain.hpp"
#include "nest/judge/isl_judge.hpp"
#include "nest/plan/plan.hpp"
#include "nest/run/interpreter.hpp"
#include "nest/term/axis.hpp"
#include "nest/term/facts.hpp"

using namespace loopegg;

namespace {
std::string normal(const char* axis) { return to_string(to_term(normal_axis(parse_term(axis)))); }
}  // namespace

TEST_CASE("equal axes have one normal form", "[unit]") {
    CHECK(normal("(quo (quo co:64 4) 4)") == "(quo co:64 16)");
    CHECK(normal("(rem (rem co:64 16) 4)") == "(rem co:64 4)");
    CHECK(normal("(pair (quo co:64 16) (rem co:64 16))") == "co:64");
    CHECK(normal("(pair (quo co:40 16) (rem co:40 16))") == "co:40");
    CHECK(normal("(quo (pair oh:8 ow:8) 8)") == "oh:8");
    CHECK(normal("(rem (pair oh:8 ow:8) 4)") == "(rem ow:8 4)");
    CHECK(normal("(span (span co:64 8 40) 0 16)") == "(span co:64 8 24)");
    CHECK(normal("(span co:64 0 64)") == "co:64");
    CHECK(axis_extent(parse_term("(quo co:40 16)")) == 3);
    CHECK(axis_extent(parse_term("(quo (rem co:64 16) 3)")) == 6);
    CHECK(axis_extent(parse_term("(diag 4 co:64 ci:32)")) == 4);
}

TEST_CASE("an axis that cannot be is refused in words", "[unit]") {
    CHECK_THROWS_AS(normal("(diag 3 co:64 ci:32)"), MalformedAxis);
    CHECK_THROWS_AS(normal("(span co:64 8 65)"), MalformedAxis);
    CHECK_THROWS_AS(normal("(tile co:64 8)"), MalformedAxis);
    CHECK_THROWS_AS(normal("co"), MalformedAxis);
}

TEST_CASE("normal forms have the values of what they stand for", "[unit]") {
    for (const char* text : {"(quo (rem co:24 12) 3)", "(rem (quo (rem co:24 12) 5) 2)", "(quo (pair co:4 ci:6) 4)", "(rem (pair co:4 ci:6) 12)",
                             "(quo (span co:24 6 18) 4)", "(rem (quo co:23 5) 2)", "(pair (rem co:24 4) (quo ci:6 2))", "(diag 2 (span co:24 6 18) ci:6)"}) {
        Term axis = parse_term(text), form = to_term(normal_axis(axis));
        for (std::int64_t co = 0; co < 24; ++co)
            for (std::int64_t ci = 0; ci < 6; ++ci) {
                auto value = [&](const Term& leaf) -> std::optional<std::int64_t> {
                    auto name = axis_name(leaf);
                    return (name->name == "co" ? co : ci) % name->extent;
                };
                INFO(text << " as " << to_string(form));
                CHECK(axis_value(axis, value) == axis_value(form, value));
            }
    }
}

namespace {

Application typed(const std::string& text) { return read_typed_application(make_source("--apply", text)); }

std::string complaint(const std::string& text) {
    try {
        typed(text);
        return "accepted";
    } catch (const UserError& e) {
        return e.what();
    }
}

}  // namespace

TEST_CASE("a typed application is what a plan with the same words holds", "[unit][nest]") {
    const auto planned = [](const std::string& json) {
        return read_plan(make_source("plan.json", R"({"steps": [{"site": "*", "apply": [)" + json + "]}]}")).steps.front().apply.front();
    };
    CHECK(typed("group-axes a=co b=ci g=4") == planned(R"({"rule": "group-axes", "with": {"?a": "co", "?b": "ci", "?g": 4}})"));
    CHECK(typed("group-axes ?a=(quo oh 16) ?b=ci ?g=2") == planned(R"x({"rule": "group-axes", "with": {"?a": "(quo oh 16)", "?b": "ci", "?g": 2}})x"));
    CHECK(typed("bottleneck-output k=2 restore=zero part=1") == planned(R"({"rule": "bottleneck-output", "with": {"?k": 2}, "restore": "zero", "part": 1})"));
    CHECK(typed("join-domain a=co backwards") == planned(R"({"rule": "join-domain", "with": {"?a": "co"}, "backwards": true})"));
    CHECK(typed("drop-branch") == planned(R"({"rule": "drop-branch"})"));
}

TEST_CASE("a mistake in a typed application is shown in its column", "[unit][nest]") {
    for (const auto& [text, column] : std::vector<std::pair<std::string, std::string>>{{"", "1:1"},
                                                                                       {"a=co", "1:1"},
                                                                                       {"group-axes a", "1:12"},
                                                                                       {"group-axes a=", "1:12"},
                                                                                       {"group-axes =co", "1:12"},
                                                                                       {"group-axes a=co a=ci", "1:17"},
                                                                                       {"group-axes a=(quo oh", "1:14"},
                                                                                       {"group-axes part=x", "1:17"}}) {
        INFO(text);
        CHECK_THAT(complaint(text), Catch::StartsWith("--apply:" + column + ": error: "));
    }
    CHECK_THAT(complaint("bottleneck-output restore=again"), Catch::Contains("expected repeat, zero, pointwise or propagate"));
}

TEST_CASE("what is typed from a plan's values is that plan", "[unit][nest]") {
    CHECK(rc::check([] {
        Application a;
        a.rule = "group-axes";
        const auto axes = std::vector<std::string>{"co", "(quo oh 4)", "(rem ci (/ (extent ci) 2))"};
        a.with["?a"] = parse_term(*rc::gen::elementOf(axes));
        a.with["?g"] = Term(std::int64_t{*rc::gen::inRange(-3, 1000)});
        if (*rc::gen::arbitrary<bool>()) a.part = *rc::gen::inRange(0, 9);
        std::string text = a.rule + " a=" + to_string(a.with["?a"]) + " ?g=" + to_string(a.with["?g"]);
        if (a.part) text += " part=" + std::to_string(*a.part);
        RC_ASSERT(typed(text) == a);
    }));
}

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

namespace {

// The interpreter in the term's order against the statement alone, on whole numbers.
void check_nest(const std::string& text) {
    INFO(text);
    Term nest = complete(parse_term(text));
    Statement s = statement_of(nest_parts(nest).statement);
    Buffers buffers = whole_number_buffers(s, 7);
    Domain domain = domain_of(nest);
    INFO(to_string(domain) << "\n" << to_string(resolve(nest), s));
    CHECK(interpret(nest, buffers) == reference(s, domain, buffers));
}

const std::string strided = "(conv2d 2 2 4 3 7 6 3 2 2 1 1 0 1 2)";
const std::string fused = "(epilogue relu (epilogue add (epilogue scale_shift (epilogue bias " + conv + "))))";

}  // namespace

TEST_CASE("naive nests of every statement compute what the statement says", "[unit]") {
    for (const char* stmt : {"(conv2d 2 2 4 3 7 6 3 2 2 1 1 0 1 2)",
                             "(linear 3 5 7)",
                             "(matmul 2 3 4 5)",
                             "(max_pool 1 3 7 7 3 3 2 2 1 1)",
                             "(avg_pool 1 3 6 6 2 2 2 2 0 0)",
                             "(avg_pool_inside 1 3 6 6 3 3 2 2 1 1)",
                             "(row_sum 3 5 2)",
                             "(row_mean 3 4 1)",
                             "(row_max 3 5 1)",
                             "(row_exp_sum 3 5 1)",
                             "(row_square 3 4 1)",
                             "(row_softmax 3 5 2)",
                             "(row_norm 3 5 1e-05)",
                             "(map relu 12)",
                             "(map gelu 12)",
                             "(zip + 12)",
                             "(stretch * 2 3 4 5 15 2)",
                             "(move 2 3 1 4)",
                             "(order I 3142 (move 2 3 1 4))",
                             "(order O 312 (epilogue add (order J 132 (matmul 2 3 4 5))))",
                             "(order O 4231 (epilogue bias (conv2d 1 1 4 3 5 5 3 3 1 1 1 1 1 1)))",
                             "(epilogue (times 0.125) (matmul 2 3 4 5))",
                             "(scale 0.125 12)",
                             "(channel_scale 2 3 5)",
                             "(recurrence 4 6)"}) {
        Statement s = statement_of(parse_term(stmt));
        check_nest(to_string(nest_of(s)));
    }
}

TEST_CASE("every loop form resolves to the same result", "[unit]") {
    auto with = [](const std::string& stmt, const std::string& sched) { check_nest("(nest " + stmt + " " + sched + ")"); };
    for (const std::string& stmt : {conv, fused}) {
        with(stmt, "(at (quo co 4) (at oh (at ci (at kh (at kw (at (rem co 4) (at ow done)))))))");
        with(stmt, "(at (quo co 3) (at oh (at (quo ci 3) (at kh (at kw (at (rem co 3) (at (rem ci 3) (at ow done))))))))");
        with(stmt, "(par (pair (quo co 4) oh) (stage O (at ci (unroll kh (unroll kw (unroll (rem co 4) (vec ow done)))))))");
        with(stmt, "(par (quo co 4) (stage W (at oh (stage O (at ci (stage I (at kh (at kw (at (rem co 4) (vec ow done))))))))))");
        with(stmt, "(at ci (at co (at oh (at ow (at kh (at kw done))))))");
        with(stmt, "(cat (at (span co 0 3) (at ci (at oh (at ow (at kh (at kw done)))))) (at (span co 3 8) (at oh (at ci (at ow (at kh (at kw done)))))))");
        with(stmt, "(cat (at co (at (span ci 0 1) (at oh (at ow (at kh (at kw done)))))) (at (span ci 1 4) (at co (at oh (at ow (at kh (at kw done)))))))");
        with(stmt, "(at co (at oh (at ow (partial par ci (at kh (at kw done))))))");
        with(stmt, "(at co (partial vec (pair ci kh) (at oh (at ow (at kw done)))))");
        with(stmt, "(bind blockIdx.x co (bind threadIdx.x (pair oh ow) (stage (shared W) (at ci (at kh (at kw done))))))");
        with(stmt, "(at (quo (pair oh ow) 5) (at (rem (pair oh ow) 5) (at co (at ci (at kh (at kw done))))))");
        with(stmt, "(at (quo (pair co ci) 5) (at oh (at ow (at (rem (pair co ci) 5) (at kh (at kw done))))))");
    }
    with(strided, "(at n (at g (at (quo oh 3) (at co (at (rem oh 3) (stage O (at ci (at kh (stage (local I) (at kw (at ow done)))))))))))");
    with("(layout O co 4 (layout W co 4 " + conv + "))", "(at (quo co 4) (at oh (at ci (at kh (at kw (at (rem co 4) (at ow done)))))))");
}

TEST_CASE("restricted nests compute their domain, and restore the rest", "[unit]") {
    auto with = [](const std::string& sched) {
        check_nest("(restore repeat (nest " + conv + " " + sched + "))");
        check_nest("(restore zero (nest " + fused + " " + sched + "))");
    };
    with("(at (span co 0 4) (at ci (at oh (at ow (at kh (at kw done))))))");
    with("(at (span (rem oh 2) 0 1) (at (quo oh 2) (at co (at ci (at ow (at kh (at kw done)))))))");
    auto whole_output = [](const std::string& sched) { check_nest("(nest " + fused + " " + sched + ")"); };
    whole_output("(at (diag 4 co ci) (at (rem co 2) (at oh (at ow (at kh (at kw done))))))");
    whole_output("(at (diag 2 co ci) (at (rem co 4) (at (rem ci 2) (at oh (at ow (at kh (at kw done)))))))");
    whole_output("(at (diag 2 (quo oh 3) ci) (at (rem ci 2) (at (rem oh 3) (at co (at ow (at kh (at kw done)))))))");
    whole_output("(at co (at ci (at oh (at ow (at (span kh 1 2) (at (span kw 1 2) done))))))");
    // S3: one half of the channels in 2 groups, the other in 4.
    whole_output(
        "(cat (at (diag 2 (span co 0 4) ci) (at (rem (span co 0 4) 2) (at (rem ci 2) (at oh (at ow (at kh (at kw done))))))) "
        "(at (diag 4 (span co 4 8) ci) (at oh (at ow (at kh (at kw done))))))");
    // S2: some channels dense, the rest grouped, where the cut falls on no block.
    whole_output(
        "(cat (at (span co 0 2) (at ci (at oh (at ow (at kh (at kw done)))))) "
        "(at (diag 2 (span co 2 8) ci) (at (rem (span co 2 8) 3) (at (rem ci 2) (at oh (at ow (at kh (at kw done))))))))");
}

TEST_CASE("a schedule that is none is refused in words", "[unit]") {
    auto refused = [](const std::string& sched) {
        try {
            resolve(complete(parse_term("(nest " + conv + " " + sched + ")")));
            return std::string("accepted");
        } catch (const UserError& e) {
            return std::string(e.what());
        }
    };
    CHECK_THAT(refused("(at co (at ci (at oh (at ow (at kh done)))))"), Catch::Contains("no loop walks 'kw'"));
    CHECK_THAT(refused("(at co (at co (at ci (at oh (at ow (at kh (at kw done)))))))"), Catch::Contains("more than one loop"));
    CHECK_THAT(refused("(at (quo co 2) (at ci (at oh (at ow (at kh (at kw done))))))"), Catch::Contains("leave some of its digits out"));
    CHECK_THAT(refused("(at cp (at ci done))"), Catch::Contains("is no axis of"));
    CHECK_THAT(refused("(at co (stage X (at ci (at oh (at ow (at kh (at kw done)))))))"), Catch::Contains("no buffer to stage"));
    CHECK_THAT(refused("(loop co done)"), Catch::Contains("is no schedule"));
}

TEST_CASE("a domain becomes a schedule over exactly its instances", "[unit]") {
    for (const char* sched : {"(at (diag 4 co ci) (at (rem co 2) (at oh (at ow (at kh (at kw done))))))",
                              "(at (diag 2 co ci) (at (rem co 4) (at (rem ci 2) (at (span (rem oh 2) 0 1) (at (quo oh 2) (at ow (at kh (at kw done))))))))",
                              "(cat (at (diag 2 (span co 0 4) ci) (at (rem (span co 0 4) 2) (at (rem ci 2) (at oh (at ow (at kh (at kw done))))))) "
                              "(at (diag 4 (span co 4 8) ci) (at oh (at ow (at kh (at kw done))))))",
                              "(cat (at (span co 0 2) (at ci (at oh (at ow (at kh (at kw done)))))) "
                              "(at (diag 2 (span co 2 8) ci) (at (rem (span co 2 8) 3) (at (rem ci 2) (at oh (at ow (at kh (at kw done))))))))"}) {
        Statement s = statement_of(parse_term(conv));
        Domain domain = domain_of(s, parse_term(sched));
        Term back = schedule_of(s, domain);
        INFO(sched << "\n" << to_string(domain) << "\n" << to_string(back));
        Buffers buffers = whole_number_buffers(s, 3);
        CHECK(interpret(s, resolve(s, back), buffers) == interpret(s, resolve(s, parse_term(sched)), buffers));
    }
}
