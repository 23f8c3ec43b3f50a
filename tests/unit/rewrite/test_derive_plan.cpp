// From a restriction back to a plan that makes it.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/sexpr.hpp"
#include "graph/builder.hpp"
#include "graph/flops.hpp"
#include "nest/domain/domain.hpp"
#include "nest/domain/with_domain.hpp"
#include "nest/plan/derive_plan.hpp"
#include "nest/term/statement.hpp"
#include "rewrite/plan_rules.hpp"
#include "tests/small_graphs.hpp"

using namespace loopegg;

namespace {

Graph one_conv() {
    GraphBuilder b("one");
    b.conv("conv", b.input("x", {1, 16, 8, 8}), {.out = 16, .kernel = 3, .padding = 1});
    return b.finish({"conv"});
}

// In the form that rules leave domains in.
Domain domain(std::vector<std::vector<std::string>> parts, Restore restore = Restore::none) {
    Domain d = test::domain(parts, restore);
    const Statement statement = statement_of(nest_parts(nest_of(one_conv().nodes[0])).statement);
    d.parts = domain_of(statement, schedule_of(statement, d)).parts;
    return d;
}

struct Step {
    const char* rule;
    std::map<std::string, const char*> with;
};

// A derivation by the shipped rules, with variables of which plans know nothing.
std::vector<DerivationStep> derivation(const std::vector<Step>& steps) {
    std::vector<DerivationStep> all;
    Term nest = nest_of(one_conv().nodes[0]);
    for (const Step& s : steps) {
        DerivationStep step{s.rule, false, {}, nest, {}};
        for (const auto& [variable, value] : s.with) step.with.emplace_back(variable, parse_term(value));
        step.after = nest = shipped_plan_rules().apply({s.rule, {step.with.begin(), step.with.end()}}, nest);
        step.with.emplace_back("?s", parse_term("done"));
        all.push_back(std::move(step));
    }
    return all;
}

// The plan that was derived, after it went through its file and gave the same network.
std::string planned(const std::vector<DerivationStep>& steps, const Domain& d) {
    const Graph graph = one_conv();
    const Graph wanted = with_domain(graph, "conv", d);
    const std::string text = write_plan({{{"conv", applications_for(graph.nodes[0], steps, d, shipped_plan_rules())}}});
    INFO(to_string(d) << " by " << text);
    CHECK(apply_plan(graph, read_plan(make_source("plan.json", text)), shipped_plan_rules()) == wanted);
    return text;
}

bool in_words(const std::string& plan) { return plan.find("restrict-nest") == std::string::npos; }

}  // namespace

TEST_CASE("the steps of a derivation are typed in the plan", "[unit][nest]") {
    auto typed = [](const std::vector<Step>& steps) {
        const auto all = derivation(steps);
        const std::string plan = planned(all, domain_of(all.back().after));
        CHECK(in_words(plan));
        CHECK(plan.find("?s") == std::string::npos);
        return plan;
    };
    typed({{"group-axes", {{"?a", "co:16"}, {"?b", "ci:16"}, {"?g", "4"}}}});
    typed({{"group-axes", {{"?a", "(rem co:16 4)"}, {"?b", "(rem ci:16 4)"}, {"?g", "4"}}}});  // interleaved
    typed({{"group-all-axes", {{"?a", "co:16"}, {"?b", "ci:16"}}}});                           // depthwise
    typed({{"bottleneck-axis", {{"?a", "(rem ci:16 2)"}, {"?k", "2"}}}, {"bottleneck-axis", {{"?a", "kh:3"}, {"?k", "3"}}}});
    typed({{"bottleneck-axis", {{"?a", "ci:16"}, {"?k", "2"}}}, {"group-axes", {{"?a", "co:16"}, {"?b", "(span ci:16 0 8)"}, {"?g", "2"}}}});
    typed({{"bottleneck-output", {{"?a", "(rem oh:8 2)"}, {"?k", "2"}, {"?h", "repeat"}}}, {"bottleneck-restored", {{"?a", "(rem ow:8 2)"}, {"?k", "2"}}}});
    typed({{"bottleneck-output", {{"?a", "co:16"}, {"?k", "4"}, {"?h", "pointwise"}}}});
    typed({{"bottleneck-output", {{"?a", "co:16"}, {"?k", "2"}, {"?h", "pointwise"}}},
           {"group-restored", {{"?a", "(span co:16 0 8)"}, {"?b", "ci:16"}, {"?g", "2"}}}});
    const std::string parts =
        typed({{"cut-domain", {{"?a", "co:16"}, {"?k", "8"}}}, {"group-second-part", {{"?a", "(span co:16 8 16)"}, {"?b", "ci:16"}, {"?g", "2"}}}});
    CHECK(parts.find("cut-domain") != std::string::npos);
    const std::string split = typed({{"split-loop", {{"?a", "ci:16"}, {"?k", "8"}}}, {"bottleneck-axis", {{"?a", "(quo ci:16 8)"}, {"?k", "2"}}}});
    CHECK(split.find("split-loop") == std::string::npos);  // it changes no domain
    CHECK(applications_for(one_conv().nodes[0], {}, {}, shipped_plan_rules()).empty());
}

TEST_CASE("a restriction that its derivation does not lead to is given as its nest", "[unit][nest]") {
    const auto half = derivation({{"bottleneck-axis", {{"?a", "ci:16"}, {"?k", "2"}}}});
    CHECK(in_words(planned(half, domain({{"0 <= ci%16 < 8"}}))));
    CHECK_FALSE(in_words(planned(half, domain({{"4 <= ci%16 < 12"}}))));
    CHECK_FALSE(in_words(planned({}, domain({{"0 <= co%16 < 8"}, {"8 <= co%16 < 16", "co/4%2 == ci/8%2"}}))));
    CHECK_FALSE(in_words(planned({}, domain({{"0 <= co%16 < 4", "4 <= ci%16 < 12"}}, Restore::pointwise))));
    auto unknown = half;
    unknown[0].rule = "a rule of another file";
    CHECK_FALSE(in_words(planned(unknown, domain({{"0 <= ci%16 < 8"}}))));
}

TEST_CASE("an iterator with its extent is the iterator itself", "[unit][nest]") {
    const std::string plan = R"~({"steps": [{"site": "conv", "apply": [
        {"rule": "bottleneck-axis", "with": {"?a": "ci", "?k": 2}}, {"rule": "bottleneck-axis", "with": {"?a": "$", "?k": 2}}]}]})~";
    auto applied = [&](const std::string& axis) {
        return apply_plan(one_conv(), read_plan(make_source("plan.json", std::string(plan).replace(plan.find('$'), 1, axis))), shipped_plan_rules());
    };
    CHECK(applied("(span ci:16 0 8)") == applied("ci"));
    CHECK_THROWS_WITH(applied("ci:16"), Catch::Contains("no loop walks"));
    CHECK_THROWS_WITH(applied("ci:8"), Catch::Contains("ci has 16 values"));
}

TEST_CASE("the leading channels come back by a 1x1 convolution, and nothing else does", "[unit][nest]") {
    const Graph graph = one_conv();
    const Graph two = with_domain(graph, "conv", domain({{"0 <= co/8%2 < 1", "0 <= co%8 < 4"}}, Restore::pointwise));  // half of the half
    CHECK(two.find("conv")->shape == Shape{1, 4, 8, 8});
    CHECK(two.find("conv")->domain.whole());
    CHECK(restoring_node(two, "conv").name == "conv.restore");
    CHECK(two.outputs == std::vector<std::string>{"conv.restore"});
    const Graph groups = with_domain(graph, "conv", domain({{"0 <= co%16 < 8", "co/4%2 == ci/8%2"}}, Restore::pointwise));
    CHECK(groups.find("conv")->integer("groups") == 2);
    CHECK(macs(groups) == 64 * (8 * 8 * 9 + 8 * 16));
    const Graph six = with_domain(graph, "conv", domain({{"0 <= co%16 < 6"}}, Restore::pointwise));
    CHECK(six.find("conv")->shape[1] == 6);
    auto refused = [&](const Domain& d, const char* why) { CHECK_THROWS_WITH(with_domain(graph, "conv", d), Catch::Contains(why)); };
    refused(domain({{"0 <= co%2 < 1"}}, Restore::pointwise), "first of them, and no others");  // every second one
    refused(domain({{"8 <= co%16 < 16"}}, Restore::pointwise), "first of them, and no others");
    refused(domain({{"0 <= oh%2 < 1"}}, Restore::pointwise), "first of them, and no others");
    refused(domain({{"0 <= co%16 < 8", "0 <= oh%2 < 1"}}, Restore::pointwise), "nothing computes");
    refused(domain({{"0 <= co%16 < 4", "0 <= kh%3 < 1"}, {"4 <= co%16 < 8"}}, Restore::pointwise), "in one piece");
    refused(test::domain({{"0 <= co%16 < 4", "co/2%4 == ci/4%4"}}, Restore::pointwise), "speaks of the others");
    GraphBuilder b("product");
    b.node("matmul", "mm", {b.input("a", {1, 4, 4}), b.input("b", {1, 4, 4})});
    CHECK_THROWS_WITH(with_domain(b.finish({"mm"}), "mm", test::domain({{"0 <= j%4 < 2"}}, Restore::pointwise)), Catch::Contains("there are none"));
    Graph node = graph;
    node.nodes[0].domain = domain({{"0 <= co%16 < 8"}}, Restore::pointwise);
    CHECK_THROWS_WITH(complete(node), Catch::Contains("convolution of their own"));
}

TEST_CASE("a nest that is no restriction of the site is refused", "[unit][nest]") {
    const std::string other = R"~({"steps": [{"site": "conv", "apply": [{"rule": "restrict-nest", "with": {"?n": "(nest (linear 1 4 4) done)"}}]}]})~";
    CHECK_THROWS_AS(apply_plan(one_conv(), read_plan(make_source("plan.json", other)), shipped_plan_rules()), UserError);
    Graph half = one_conv();
    half.nodes[0].domain = domain({{"0 <= ci%16 < 8"}});
    const std::string whole = write_plan({{{"conv", applications_for(half.nodes[0], {}, domain({{"0 <= ci%16 < 12"}}), shipped_plan_rules())}}});
    CHECK_THROWS_WITH(apply_plan(half, read_plan(make_source("plan.json", whole)), shipped_plan_rules()), Catch::Contains("left out already"));
}
