#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "graph/builder.hpp"
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
  {"name": "conv", "op": "conv2d", "inputs": ["x"], "attrs": {"out_channels": 8, "kernel": [3, 3], "padding": [1, 1], "bias": false}, )"
                    R"("domain": {"parts": [["0 <= oh%2 < 1", "co/2%4 == ci/2%4"]], "restore": "repeat"}},
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
    } catch (const UserError& e) {
        return e.what();
    }
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

TEST_CASE("a network with its batch written into it takes no other batch", "[unit][graph][errors]") {
    const auto reshaped = [](std::int64_t rows) {
        GraphBuilder b("fixed");
        return b.finish({b.node("reshape", "y", {b.input("x", {1, 4, 2})}, {{"shape", std::vector<std::int64_t>{rows, 8}}})});
    };
    CHECK(with_batch(reshaped(0), 3).shape_of("y") == Shape{3, 8});
    CHECK(with_batch(reshaped(1), 1) == reshaped(1));
    CHECK_THROWS_WITH(with_batch(reshaped(1), 3), Catch::Contains("'fixed' is made for a batch of 1 and cannot take 3") && Catch::Contains("node 'y'"));

    // A slice of the batch fits any batch, and yet its result is that of one image alone.
    GraphBuilder b("first");
    const std::vector<std::int64_t> zero(2, 0), one(2, 1);
    const Graph first = b.finish({b.node("slice", "y", {b.input("x", {1, 4})}, {{"starts", zero}, {"ends", std::vector<std::int64_t>{1, 4}}, {"steps", one}})});
    CHECK_THROWS_WITH(with_batch(first, 3), Catch::Contains("node 'y' is 1x4 for a batch of 1 and 1x4 for a batch of 3"));

    // An input that has another first dimension is no batch.
    GraphBuilder two("two");
    const std::string x = two.input("x", {1, 4}), table = two.input("table", {4, 5});
    const Graph g = with_batch(two.finish({two.node("matmul", "y", {x, table})}), 3);
    CHECK(g.inputs[1].shape == Shape{4, 5});
    CHECK(g.shape_of("y") == Shape{3, 5});
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
    CHECK(complaint(with("batch_norm", "batch_nrom")) ==
          "m.json:6:24: error: unknown operator 'batch_nrom'\n"
          "    {\"name\": \"bn\", \"op\": \"batch_nrom\", \"inputs\": [\"conv\"]},\n"
          "                         ^\n  did you mean 'batch_norm'?");
    CHECK(complaint(with("[\"bn\", \"x\"]", "[\"bn\", \"y\"]")).find("7:49: error: there is no node or input named 'y'") != std::string::npos);
    CHECK(complaint(with("\"padding\"", "\"paddin\"")).find("did you mean 'padding'?") != std::string::npos);
    CHECK(complaint(with("[\"conv\"]", "[\"sum\"]")).find("a cycle: bn <- sum <- bn") != std::string::npos);
    CHECK(complaint(with("ci/2%4", "ci/2%2")).find("pairs digits of different radix") != std::string::npos);
    CHECK(complaint(with(", \"restore\": \"repeat\"", "")).find("needs a restore") != std::string::npos);
}
