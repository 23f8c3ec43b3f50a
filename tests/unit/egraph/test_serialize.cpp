#include <catch2/catch.hpp>

#include "bench/math_rules.hpp"
#include "compare.hpp"
#include "egraph/runner.hpp"
#include "egraph/serialize.hpp"

using namespace loopegg;

TEST_CASE("an e-graph is written and read back", "[unit]") {
    EGraph graph;
    std::vector<ClassId> roots;
    for (const Term& t : math_terms()) roots.push_back(graph.add(t));
    RunOptions options;
    options.limits.iterations = 5;
    Runner(graph, math_rules()).run(options);
    const std::string text = write_egraph_json(graph, roots);
    const ReadEGraph back = read_egraph_json(make_source("math.json", text));
    CHECK(difference(graph, back.graph) == "");
    REQUIRE(back.roots.size() == roots.size());
    CHECK(back.graph.smallest_term(back.roots[0]) == graph.smallest_term(roots[0]));
    CHECK(write_egraph_json(graph, roots) == text);
    CHECK_THROWS_WITH(write_egraph_dot(graph), Catch::Contains("too large to draw"));
}

TEST_CASE("a small e-graph is drawn", "[unit]") {
    EGraph graph;
    graph.merge(graph.add(parse_term("(f a)")), graph.add(parse_term("a")));
    graph.rebuild();
    const std::string dot = write_egraph_dot(graph);
    CHECK(dot.find("digraph") == 0);
    CHECK(dot.find("cluster_") != std::string::npos);
}

TEST_CASE("an e-graph file that cannot be one is answered with the place", "[errors]") {
    auto read = [](const char* text) { return read_egraph_json(make_source("bad.json", text)); };
    CHECK_THROWS_WITH(read(R"({"nodes": {"a": {"op": "f", "children": ["b"], "eclass": "1"}}, "root_eclasses": ["1"]})"),
                      Catch::Contains("'b' is no node") && Catch::Contains("bad.json:1:"));
    CHECK_THROWS_WITH(read(R"({"nodes": {"a": {"op": "f", "children": ["a"], "eclass": "1"}}, "root_eclasses": ["1"]})"), Catch::Contains("no finite term"));
    CHECK_THROWS_WITH(read(R"({"nodes": {"a": {"op": "x", "children": [], "eclass": "1"}}, "root_eclasses": ["2"]})"), Catch::Contains("'2' is no class"));
    CHECK_THROWS_AS(read("[1, 2]"), UserError);
}
