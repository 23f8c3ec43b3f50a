#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/sexpr.hpp"
#include "nest/plan/plan.hpp"

using namespace loopegg;

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
