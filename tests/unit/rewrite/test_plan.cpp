#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "graph/builder.hpp"
#include "graph/carry_weights.hpp"
#include "graph/flops.hpp"
#include "graph/operators.hpp"
#include "graph/weights.hpp"
#include "graph/zoo/zoo.hpp"
#include "nest/domain/domain.hpp"
#include "rewrite/plan_rules.hpp"

using namespace loopegg;

namespace {

Plan plan(const std::string& site, const std::string& apply) {
    return read_plan(make_source("plan.json", R"({"steps": [{"site": ")" + site + R"(", "apply": [)" + apply + "]}]}"));
}

std::string group(const std::string& a, const std::string& b, const std::string& g, const std::string& more = "") {
    return R"({"rule": "group-axes", "with": {"?a": ")" + a + R"(", "?b": ")" + b + R"(", "?g": ")" + g + "\"}" + more + "}";
}

std::string bottleneck(const std::string& a, int k, const std::string& restore) {
    return R"({"rule": "bottleneck-axis", "with": {"?a": ")" + a + R"(", "?k": )" + std::to_string(k) + "}" +
           (restore.empty() ? "" : R"(, "restore": ")" + restore + "\"") + "}";
}

const Graph& resnet() {
    static const Graph graph = zoo_graph("resnet34-cifar10");
    return graph;
}

Graph applied(const Graph& g, const Plan& p) { return apply_plan(g, p, shipped_plan_rules()); }

std::string refusal(const Plan& p, const Graph& g = resnet()) {
    try {
        applied(g, p);
        return "accepted";
    } catch (const UserError& e) {
        return e.what();
    }
}

const std::string site = "layer1.0.conv1";
std::int64_t macs_of(const Graph& g, const std::string& name = site) { return macs(*g.find(name)); }
std::int64_t whole() { return macs_of(resnet()); }

}  // namespace

TEST_CASE("grouped channels become the groups of an ordinary convolution", "[unit]") {
    Graph g = applied(resnet(), plan(site, group("co", "ci", "4")));
    CHECK(g.find(site)->integer("groups") == 4);
    CHECK(g.find(site)->domain.whole());
    CHECK(macs_of(g) == whole() / 4);
    CHECK(applied(g, plan(site, group("co", "ci", "2"))).find(site)->integer("groups") == 8);
    CHECK(applied(resnet(), plan(site, group("co", "ci", "4") + "," + group("co", "ci", "2"))).find(site)->integer("groups") == 8);
    Graph depthwise = applied(resnet(), plan("layer1.*.conv?", group("co", "ci", "(extent co)")));
    CHECK(depthwise.find("layer1.2.conv2")->integer("groups") == 64);
    CHECK(depthwise.find("layer2.0.conv1")->integer("groups") == 1);
}

TEST_CASE("restrictions that no operator says stay as domains", "[unit]") {
    Graph space = applied(resnet(), plan(site, group("(quo oh (/ (extent oh) 2))", "ci", "2")));
    CHECK(macs_of(space) == whole() / 2);
    CHECK_FALSE(space.find(site)->domain.whole());
    Graph rows = applied(resnet(), plan(site, bottleneck("(rem oh 2)", 2, "repeat") + "," + bottleneck("(rem ow 2)", 2, "repeat")));
    CHECK(macs_of(rows) == whole() / 4);
    CHECK(rows.find(site)->domain.restore == Restore::repeat);
    Graph inputs = applied(resnet(), plan(site, bottleneck("ci", 4, "")));
    CHECK(macs_of(inputs) == whole() / 4);
    Graph kernel = applied(resnet(), plan(site, bottleneck("kh", 3, "")));
    CHECK(macs_of(kernel) == whole() / 3);
    // S3, and S2 with a cut that falls on no block.
    std::string cut = R"x({"rule": "cut-domain", "with": {"?a": "co", "?k": "(/ (extent co) 2)"}})x";
    Graph mixed = applied(resnet(), plan(site, cut + "," + group("co", "ci", "2", R"(, "part": 0)") + "," + group("co", "ci", "4", R"(, "part": 1)")));
    CHECK(macs_of(mixed) == whole() * 3 / 8);
    std::string early = R"({"rule": "cut-domain", "with": {"?a": "co", "?k": 16}})";
    Graph partly = applied(resnet(), plan(site, early + "," + group("co", "ci", "2", R"(, "part": 1)")));
    CHECK(macs_of(partly) == whole() / 4 + whole() * 3 / 8);
}

TEST_CASE("fewer channels come back through a convolution, or their readers do without", "[unit]") {
    Graph pointwise = applied(resnet(), plan(site, bottleneck("co", 4, "pointwise")));
    CHECK(pointwise.find(site)->shape[1] == 16);
    REQUIRE(pointwise.find(site + ".restore") != nullptr);
    CHECK(pointwise.find(site + ".restore")->shape[1] == 64);
    CHECK(macs_of(pointwise) == whole() / 4);
    Graph hidden = applied(resnet(), plan(site, bottleneck("co", 2, "propagate")));
    CHECK(hidden.find(site)->shape[1] == 32);
    CHECK(macs_of(hidden, "layer1.0.conv2") == whole() / 2);
    CHECK(hidden.find("layer1.0.conv2")->shape[1] == 64);
    CHECK_THAT(refusal(plan("layer1.0.conv2", bottleneck("co", 2, "propagate"))), Catch::Contains("residual"));
    Graph mobile = zoo_graph("mobilenet_v2");
    for (const Node& node : mobile.nodes) {
        if (node.op != "conv2d" || node.integer("groups") != 1 || node.name.find("features.2.conv.0") == std::string::npos) continue;
        Graph narrow = applied(mobile, plan(node.name, bottleneck("co", 2, "propagate")));
        CHECK(macs(narrow) < macs(mobile));
    }
}

TEST_CASE("channels that are joined to others behind them can be fewer", "[unit]") {
    const Graph dense = zoo_graph("densenet100-cifar10");
    const std::string first = "features.conv0";
    REQUIRE(dense.find(first) != nullptr);
    const Graph narrow = applied(dense, plan(first, bottleneck("co", 2, "propagate")));
    CHECK(narrow.find(first)->shape[1] * 2 == dense.find(first)->shape[1]);
    CHECK(macs(narrow) < macs(dense));
}

TEST_CASE("what a rule refuses is said with the site and the reason", "[unit]") {
    CHECK_THAT(refusal(plan(site, group("co", "ci", "7"))), Catch::Contains("(divides ?g (extent ?a)) does not hold: 7 divides 64") && Catch::Contains(site));
    CHECK_THAT(refusal(plan(site, bottleneck("co", 2, ""))), Catch::Contains("output axis"));
    CHECK_THAT(refusal(plan(site, group("oh", "ow", "2"))), Catch::Contains("ow is no reduction"));
    CHECK_THAT(refusal(plan(site, group("co", "co", "2"))), Catch::Contains("both walk"));
    CHECK_THAT(refusal(plan("layer9.*", group("co", "ci", "2"))), Catch::Contains("layer9"));
    CHECK_THAT(refusal(plan(site, R"({"rule": "group-axis", "with": {}})")), Catch::Contains("group-axes"));
    CHECK_THAT(refusal(plan(site, group("cp", "ci", "2"))), Catch::Contains("is no axis"));
    CHECK_THAT(refusal(plan(site, bottleneck("oh", 2, "propagate"))), Catch::Contains("output channels"));
    CHECK_THAT(refusal(plan(site, bottleneck("oh", 2, "pointwise"))), Catch::Contains("oh is not the leading part of the output channels"));
    CHECK_THAT(refusal(plan(site, bottleneck("ci", 2, "pointwise"))), Catch::Contains("output channels"));
    CHECK_THAT(refusal(plan(site, bottleneck("ci", 1, ""))), Catch::Contains("nothing is left out"));
    CHECK_THAT(refusal(plan(site, group("co", "ci", "(extent co)") + "," + group("co", "ci", "2"))), Catch::Contains("nothing is left of 'co'"));
    CHECK_THAT(refusal(plan(site, bottleneck("(rem oh 2)", 2, "repeat") + "," + bottleneck("(rem ow 2)", 2, "zero"))), Catch::Contains("restored one way"));
    CHECK_THAT(refusal(plan(site, R"({"rule": "cut-domain", "with": {"?a": "co", "?k": 64}})")),
               Catch::Contains("cut-domain") && Catch::Contains("a span from 64 to 64 of an axis with extent 64"));
}

TEST_CASE("weights carry over as slices", "[unit]") {
    Weights before = initial_weights(resnet(), 1);
    auto at = [](const Tensor& t, std::int64_t o, std::int64_t i) {
        return t.values[static_cast<std::size_t>((o * t.shape[1] + i) * t.shape[2] * t.shape[3])];
    };
    const Tensor& dense = before.at(site + ".weight");
    Graph grouped = applied(resnet(), plan(site, group("co", "ci", "4")));
    const Tensor blocks = carry_weights(resnet(), before, grouped).at(site + ".weight");
    CHECK(blocks.shape == Shape{64, 16, 3, 3});
    CHECK(at(blocks, 20, 3) == at(dense, 20, 19));
    CHECK(at(blocks, 63, 15) == at(dense, 63, 63));
    Graph hidden = applied(resnet(), plan(site, bottleneck("co", 2, "propagate")));
    Weights carried = carry_weights(resnet(), before, hidden);
    CHECK(at(carried.at(site + ".weight"), 31, 63) == at(dense, 31, 63));
    CHECK(at(carried.at("layer1.0.conv2.weight"), 63, 31) == at(before.at("layer1.0.conv2.weight"), 63, 31));
    CHECK(carried.at("layer1.0.bn1.weight").shape == Shape{32});
    // Of groups the first channels of each are left.
    GraphBuilder b("grouped");
    b.conv("conv", b.input("x", {1, 8, 3, 3}), {.out = 8, .kernel = 1, .groups = 2, .bias = true});
    const Graph whole = b.finish({"conv"});
    const Weights old = initial_weights(whole, 1), halved = carry_weights(whole, old, applied(whole, plan("conv", bottleneck("co", 2, "pointwise"))));
    for (std::int64_t o = 0; o < 4; ++o) {
        CHECK(at(halved.at("conv.weight"), o, 3) == at(old.at("conv.weight"), o / 2 * 4 + o % 2, 3));
        CHECK(halved.at("conv.bias").values[static_cast<std::size_t>(o)] == old.at("conv.bias").values[static_cast<std::size_t>(o / 2 * 4 + o % 2)]);
    }
}

TEST_CASE("a plan is written as it was read", "[unit]") {
    Plan p = plan(site, group("(rem oh 2)", "ci", "(extent co)", R"(, "part": 1)") + "," + bottleneck("co", 2, "repeat"));
    CHECK(read_plan(make_source("again", write_plan(p))) == p);
}

TEST_CASE("the nests of a whole network are those of its domains", "[unit]") {
    Graph g = applied(resnet(), plan("layer?.*.conv?", bottleneck("(rem oh 2)", 2, "repeat")));
    for (const Node& node : g.nodes) {
        if (!is_site(node)) continue;
        Term nest = nest_of(node);
        CHECK(domain_of(nest) == node.domain);
    }
}

TEST_CASE("branches are dropped and streams narrowed by plans", "[unit]") {
    const std::string drop = R"({"rule": "drop-branch"})";
    const auto narrow = [](int w) { return R"({"rule": "narrow-stream", "with": {"?w": )" + std::to_string(w) + "}}"; };
    const auto hidden = [](const std::string& w) { return R"({"rule": "bottleneck-output", "with": {"?w": )" + w + R"(}, "restore": "propagate"})"; };
    Graph shallow = applied(resnet(), plan("layer1.2.conv2", drop));
    CHECK(macs(shallow) == macs(resnet()) - 2 * whole());
    CHECK(shallow.find("layer1.2.conv1") == nullptr);
    // A whole block, or a stage, by its glob; a branch beside a projection leaves the projection.
    CHECK(applied(resnet(), plan("layer1.2.*", drop)) == shallow);
    Graph stages = applied(resnet(), plan("layer2.*", drop));
    CHECK(stages.find("layer2.0.downsample.0") != nullptr);
    CHECK(stages.find("layer2.3.conv2") == nullptr);
    CHECK(stages.find("layer2.0.conv2") == nullptr);
    Graph slim = applied(resnet(), plan("layer1.*", narrow(48)));
    CHECK(slim.find("conv1")->shape[1] == 48);
    CHECK(slim.find("layer1.1.conv2")->shape[1] == 48);
    CHECK(slim.find("layer1.1.conv1")->shape[1] == 64);
    CHECK(slim.find("layer2.0.conv1")->input_shapes[0][1] == 48);
    CHECK(slim.find("layer2.0.downsample.0")->input_shapes[0][1] == 48);
    CHECK(applied(resnet(), plan("conv1", narrow(48))) == slim);
    CHECK_THAT(refusal(plan("layer1.*", R"x({"rule": "narrow-stream", "with": {"?w": "(/ (* 3 (extent co)) 4)"}})x")),
               Catch::Contains("is not a number of channels"));
    // A hidden width, and groups on what is left of it.
    Graph grouped = applied(resnet(), plan("layer1.0.conv1", hidden("24") + "," + group("co", "ci", "4")));
    CHECK(grouped.find("layer1.0.conv1")->shape[1] == 24);
    CHECK(grouped.find("layer1.0.conv1")->integer("groups") == 4);
    CHECK(grouped.find("layer1.0.conv2")->input_shapes[0][1] == 24);
    const Graph next = zoo_graph("resnext29_2x64d");
    CHECK(applied(next, plan("layer1.0.conv1", hidden("96"))).find("layer1.0.conv2")->input_shapes[0][1] == 96);
    CHECK_THAT(refusal(plan("layer1.0.conv2", hidden("95")), next), Catch::Contains("in each of 2 groups"));
    CHECK_THAT(refusal(plan("layer1.0.conv2", hidden("32"))), Catch::Contains("narrow-stream"));
    CHECK(applied(resnet(), plan("layer1.2.conv1", drop)) == shallow);
    CHECK_THAT(refusal(plan("fc", narrow(5))), Catch::Contains("takes nothing"));
    CHECK_THAT(refusal(plan("layer1.*", narrow(65))), Catch::Contains("65"));
    CHECK_THAT(refusal(plan("layer1.*", narrow(0))), Catch::Contains("cannot have"));
    CHECK_THAT(refusal(plan("layer1.*", R"({"rule": "narrow-stream"})")), Catch::Contains("?w"));
    const Graph plain = zoo_graph("vgg16-cifar10");
    const auto width = [](int w) { return R"({"rule": "narrow-width", "with": {"?w": )" + std::to_string(w) + "}}"; };
    CHECK(applied(plain, plan("features.0", width(40))).find("features.3")->input_shapes[0][1] == 40);
    CHECK(applied(plain, plan("features.40", width(128))).find("classifier")->input_shapes[0].back() == 128);
    CHECK_THAT(refusal(plan("features.*", drop), plain), Catch::Contains("features.*"));
}
