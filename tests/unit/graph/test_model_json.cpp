#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "graph/flops.hpp"
#include "graph/model_json.hpp"
#include "graph/operators.hpp"

using namespace loopegg;

namespace {

// clang-format off: the writer puts a node on one line
const char* small = R"({"loopegg": 1,
 "name": "small",
 "inputs": [{"name": "x", "shape": [1, 8, 6, 6], "dtype": "float32"}],
 "nodes": [
  {"name": "conv", "op": "conv2d", "inputs": ["x"], "attrs": {"out_channels": 8, "kernel": [3, 3], "padding": [1, 1], "bias": false}, "domain": {"parts": [["0 <= oh%2 < 1", "co/2%4 == ci/2%4"]], "restore": "repeat"}},
  {"name": "bn", "op": "batch_norm", "inputs": ["conv"]},
  {"name": "sum", "op": "add", "inputs": ["bn", "x"]},
  {"name": "pool", "op": "global_avg_pool", "inputs": ["sum"]},
  {"name": "flat", "op": "flatten", "inputs": ["pool"]},
  {"name": "fc", "op": "linear", "inputs": ["flat"], "attrs": {"out_features": 10}}],
 "outputs": ["fc"]}
)";
// clang-format on

Graph read(std::string text) { return read_model(make_source("m.json", std::move(text))); }

std::string complaint(std::string text) {
    try {
        read(std::move(text));
    } catch (const UserError& e) { return e.what(); }
    return "";
}

std::string with(std::string_view from, std::string_view to) {
    std::string text = small;
    text.replace(text.find(from), from.size(), to);
    return text;
}

}  // namespace

TEST_CASE("model.json is read, completed and written back byte for byte", "[unit][graph]") {
    Graph g = read(small);
    CHECK(write_model(g) == small);
    CHECK(read(write_model(g)) == g);
    CHECK(g.find("conv")->integers("stride") == std::vector<std::int64_t>{1, 1});
    CHECK(g.shape_of("pool") == Shape{1, 8, 1, 1});
    CHECK(g.find("fc")->shape == Shape{1, 10});
    CHECK(g.find("conv")->domain.restore == Restore::repeat);
    CHECK(with_batch(g, 5).shape_of("fc") == Shape{5, 10});
}

TEST_CASE("nodes are put in topological order", "[unit][graph]") {
    Graph g = read(small);
    std::reverse(g.nodes.begin(), g.nodes.end());
    complete(g);
    CHECK(g == read(small));
}

TEST_CASE("parameters and MACs honour the domain", "[unit][graph]") {
    Graph g = read(small);
    CHECK(macs(*g.find("conv")) == 8 * 2 * 3 * 6 * 9);
    CHECK(parameters(*g.find("conv")) == 8 * 2 * 9);
    CHECK(parameters(*g.find("bn")) == 16);
    CHECK(parameters(*g.find("fc")) == 90);
    CHECK(macs(g) == macs(*g.find("conv")) + 80);
}

TEST_CASE("axes of sites", "[unit][graph]") {
    Graph g = read(small);
    CHECK(axes_of(*g.find("conv")) ==
          std::vector<Axis>{{"n", 1}, {"g", 1}, {"co", 8}, {"ci", 8, true}, {"oh", 6}, {"ow", 6}, {"kh", 3, true}, {"kw", 3, true}});
    CHECK(axes_of(*g.find("fc")) == std::vector<Axis>{{"n", 1}, {"co", 10}, {"ci", 8, true}});
    CHECK_FALSE(is_site(*g.find("bn")));
}

TEST_CASE("complaints about meaning point into the file", "[errors][graph]") {
    CHECK(complaint(with("batch_norm", "batch_nrom")) == "m.json:6:24: error: unknown operator 'batch_nrom'\n"
          "    {\"name\": \"bn\", \"op\": \"batch_nrom\", \"inputs\": [\"conv\"]},\n"
          "                         ^\n  did you mean 'batch_norm'?");
    CHECK(complaint(with("[\"bn\", \"x\"]", "[\"bn\", \"y\"]")).find("7:49: error: there is no node or input named 'y'") != std::string::npos);
    CHECK(complaint(with("\"padding\"", "\"paddin\"")).find("did you mean 'padding'?") != std::string::npos);
    CHECK(complaint(with("[\"conv\"]", "[\"sum\"]")).find("a cycle: bn <- sum <- bn") != std::string::npos);
    CHECK(complaint(with("ci/2%4", "ci/2%2")).find("pairs digits of different radix") != std::string::npos);
    CHECK(complaint(with(", \"restore\": \"repeat\"", "")).find("needs a restore") != std::string::npos);
}
