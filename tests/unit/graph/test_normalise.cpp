#include <catch2/catch.hpp>

#include "graph/builder.hpp"
#include "graph/carry_weights.hpp"
#include "graph/flops.hpp"
#include "graph/interpreter.hpp"
#include "graph/normalise.hpp"
#include "graph/weights.hpp"

using namespace loopegg;

namespace {

Graph conv(std::vector<std::string> conditions, std::int64_t groups = 1, Restore restore = Restore::none) {
    GraphBuilder b("conv");
    Graph g =
        b.finish({b.norm("bn", b.conv("y", b.input("x", {1, 16, 9, 9}), {.out = 8, .kernel = 3, .stride = 2, .padding = 1, .groups = groups, .bias = true}))});
    DomainPart part;
    for (const std::string& c : conditions) REQUIRE(add_condition(part, c).empty());
    if (!conditions.empty()) g.nodes[0].domain = {{part}, restore};
    complete(g);
    return g;
}

void same_meaning(const Graph& restricted) {
    Graph dense = conv({}, restricted.nodes[0].integer("groups")), normal = normalise(restricted);
    Weights weights = initial_weights(dense, 3);
    Tensors x{{"x", normal_tensor({1, 16, 9, 9}, 4, "x")}};
    CHECK(interpret(normal, carry_weights(restricted, weights, normal), x) == interpret(restricted, weights, x));
    CHECK(macs(normal) == macs(restricted));
    CHECK(parameters(normal) == parameters(restricted));
}

}  // namespace

TEST_CASE("diagonal blocks become groups", "[unit][graph]") {
    Graph g = conv({"co/2%4 == ci/4%4"});
    CHECK(as_groups(g.nodes[0]) == 4);
    CHECK(normalise(g).nodes[0].integer("groups") == 4);
    same_meaning(g);
    same_meaning(conv({"co/2%2 == ci/4%2"}, 2));
    CHECK(as_groups(conv({"co/4%2 == ci/8%2", "co/2%2 == ci/4%2"}).nodes[0]) == 4);  // grouped twice
    CHECK(as_groups(conv({"co%8 == ci/2%8"}).nodes[0]) == 8);
}

TEST_CASE("other domains stay domains", "[unit][graph]") {
    for (const Graph& g :
         {conv({"co%4 == ci%4"}), conv({"0 <= ci%16 < 8"}), conv({"0 <= co%8 < 4"}, 1, Restore::repeat), conv({"oh/3%2 == ci/8%2"}), conv({"1 <= kh%3 < 3"})}) {
        CHECK_FALSE(as_groups(g.nodes[0]).has_value());
        same_meaning(g);
    }
    CHECK_FALSE(normalise(conv({"co%4 == ci%4"})).nodes[0].domain.whole());
}

TEST_CASE("a part of the kernel becomes a kernel", "[unit][graph]") {
    Graph g = conv({"1 <= kh%3 < 2", "1 <= kw%3 < 2"});
    CHECK(normalise(g).nodes[0].integers("kernel") == std::vector<std::int64_t>{1, 1});
    CHECK(normalise(g).nodes[0].domain.whole());
    same_meaning(g);
    same_meaning(conv({"0 <= kh%2 < 1"}));  // rows 0 and 2: a kernel of 2 with dilation 2
    Graph both = conv({"1 <= kw%3 < 2", "co/4%2 == ci/8%2"});
    CHECK(normalise(both).nodes[0].domain.whole());
    same_meaning(both);
}

TEST_CASE("fewer channels take the first weights, added nodes are drawn", "[unit][graph]") {
    GraphBuilder a("wide"), b("narrow");
    auto make = [](GraphBuilder& g, std::int64_t hidden, bool extra) {
        std::string x = g.norm("bn", g.conv("one", g.input("x", {1, 4, 5, 5}), {.out = hidden, .kernel = 1}));
        x = g.conv("two", x, {.out = 4, .kernel = 3, .padding = 1});
        return g.finish({extra ? g.conv("three", x, {.out = 2, .kernel = 1}) : x});
    };
    Graph wide = make(a, 8, false), narrow = make(b, 3, true);
    Weights w = initial_weights(wide, 1), v = carry_weights(wide, w, narrow, 7);
    CHECK(v.at("one.weight").shape == Shape{3, 4, 1, 1});
    CHECK(std::equal(v.at("one.weight").values.begin(), v.at("one.weight").values.end(), w.at("one.weight").values.begin()));
    CHECK(v.at("two.weight").shape == Shape{4, 3, 3, 3});
    CHECK(v.at("two.weight").values[27] == w.at("two.weight").values[72]);
    CHECK(v.at("bn.running_var").values == std::vector<float>{1, 1, 1});
    CHECK(v.at("three.weight") == initial_weights(narrow, 7).at("three.weight"));
}
