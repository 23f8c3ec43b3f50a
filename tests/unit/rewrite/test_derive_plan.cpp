// From a restriction back to a plan that makes it.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "graph/builder.hpp"
#include "graph/flops.hpp"
#include "nest/domain/domain.hpp"
#include "nest/domain/with_domain.hpp"
#include "nest/plan/derive_plan.hpp"
#include "nest/term/statement.hpp"
#include "rewrite/plan_rules.hpp"
#include "tests/domains.hpp"

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

// The plan that was derived, after it went through its file and gave the same network.
std::string planned(const Domain& d) {
    const Graph graph = one_conv();
    const Graph wanted = with_domain(graph, "conv", d);
    const std::string text = write_plan({{{"conv", applications_for(graph.nodes[0], d, shipped_plan_rules())}}});
    INFO(to_string(d) << " by " << text);
    CHECK(apply_plan(graph, read_plan(make_source("plan.json", text)), shipped_plan_rules()) == wanted);
    return text;
}

bool in_words(const std::string& plan) { return plan.find("restrict-nest") == std::string::npos; }

}  // namespace

TEST_CASE("a restriction that rules of plans say becomes these rules", "[unit][nest]") {
    CHECK(in_words(planned(domain({{"co/4%4 == ci/4%4"}}))));                                                             // grouped
    CHECK(in_words(planned(domain({{"co%4 == ci%4"}}))));                                                                 // interleaved
    CHECK(in_words(planned(domain({{"co%16 == ci%16"}}))));                                                               // depthwise
    CHECK(in_words(planned(domain({{"ci/8%2 == oh/4%2"}}))));                                                             // S1
    CHECK(in_words(planned(domain({{"0 <= co%16 < 8", "co/4%2 == ci/8%2"}, {"8 <= co%16 < 16", "co/2%4 == ci/4%4"}}))));  // S3
    CHECK(in_words(planned(domain({{"0 <= ci%16 < 8"}}))));
    CHECK(in_words(planned(domain({{"0 <= kh%3 < 1", "0 <= ci%2 < 1"}}))));
    CHECK(in_words(planned(domain({{"0 <= oh%2 < 1", "0 <= ow%2 < 1"}}, Restore::repeat))));
    CHECK(in_words(planned(domain({{"0 <= co%16 < 4"}}, Restore::zero))));
    CHECK(in_words(planned(domain({{"0 <= co%4 < 2", "co/4%4 == ci/4%4"}}, Restore::repeat))));  // both on one axis
    CHECK(in_words(planned(domain({{"0 <= co%16 < 4"}}, Restore::pointwise))));
    CHECK(in_words(planned(domain({{"0 <= co/8%2 < 1", "co/4%2 == ci/8%2"}}, Restore::pointwise))));  // grouped, then a 1x1 convolution
    CHECK(in_words(planned(domain({{"0 <= co%16 < 8", "0 <= kh%3 < 1"}}, Restore::pointwise))));
    CHECK(applications_for(one_conv().nodes[0], {}, shipped_plan_rules()).empty());
}

TEST_CASE("a restriction that they do not say is given as its nest", "[unit][nest]") {
    CHECK_FALSE(in_words(planned(domain({{"0 <= co%16 < 8"}, {"8 <= co%16 < 16", "co/4%2 == ci/8%2"}}))));  // S2: its parts name the cut by different digits
    CHECK_FALSE(in_words(planned(domain({{"4 <= ci%16 < 12"}}))));
    CHECK_FALSE(in_words(planned(domain({{"0 <= co%16 < 4", "4 <= ci%16 < 12"}}, Restore::pointwise))));
    CHECK_FALSE(in_words(planned(domain({{"3 <= ci%16 < 16"}}))));
    CHECK_FALSE(in_words(planned(domain({{"0 <= co%16 < 4"}, {"4 <= co%16 < 16", "ci/8%2 == co%2"}}))));
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
    CHECK(in_words(planned(domain({{"0 <= co%16 < 6"}}, Restore::pointwise))));
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
    const std::string whole = write_plan({{{"conv", applications_for(half.nodes[0], domain({{"0 <= ci%16 < 12"}}), shipped_plan_rules())}}});
    CHECK_THROWS_WITH(apply_plan(half, read_plan(make_source("plan.json", whole)), shipped_plan_rules()), Catch::Contains("left out already"));
}
