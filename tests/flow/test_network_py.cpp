// network.py gives in PyTorch what the interpreter gives here, for every operator and every kind of restriction.
#include <cstdio>
#include <cstdlib>

#include <catch2/catch.hpp>

#include "base/files.hpp"
#include "graph/builder.hpp"
#include "graph/interpreter.hpp"
#include "graph/load.hpp"
#include "graph/pytorch/network_py.hpp"
#include "graph/safetensors.hpp"
#include "graph/weights.hpp"
#include "shell.hpp"
#include "tests/small_graphs.hpp"

using namespace loopegg;

namespace {

using test::domain;

// A Python that has PyTorch: named by the user, or the peers' folder of set-up, or the one on the path.
std::string python() {
    const char* named = std::getenv("LOOPEGG_TORCH_PYTHON");
    if (named && *named) return named;
    std::string peers = LOOPEGG_SOURCE "/.deps/peers/bin/python";
    return std::filesystem::exists(peers) && test::shell(test::quoted(peers) + " -c 'import torch' 2>/dev/null").code == 0 ? peers : "python3";
}

// False: skipped.
bool same_in_torch(const Graph& graph, const char* test_name) {
    test::TemporaryFolder folder;
    const Weights weights = initial_weights(graph, 3);
    Weights io;
    Tensors inputs;
    for (std::size_t i = 0; i < graph.inputs.size(); ++i)
        io["input." + std::to_string(i)] = inputs[graph.inputs[i].name] = normal_tensor(graph.inputs[i].shape, 5, graph.inputs[i].name);
    const Tensors outputs = interpret(graph, weights, inputs);
    for (std::size_t i = 0; i < graph.outputs.size(); ++i) io["output." + std::to_string(i)] = outputs.at(graph.outputs[i]);
    write_file(folder / "network.py", network_py(graph));
    write_file(folder / "weights.safetensors", write_safetensors(weights));
    write_file(folder / "io.safetensors", write_safetensors(io));
    REQUIRE(test::shell("python3 -m py_compile " + test::quoted(folder / "network.py")).code == 0);
    test::Ran ran = test::shell(test::quoted(python()) + " " LOOPEGG_SOURCE "/tests/flow/check_network.py " + test::quoted(folder.path().string()) + " 2>&1");
    if (ran.code == 77) {
        std::printf("SKIPPED: %s: no Python with PyTorch here (setup/prepare test-extras installs it)\n", test_name);
        return false;
    }
    INFO(ran.out);
    REQUIRE(ran.code == 0);
    CHECK(std::stod(ran.out.substr(ran.out.rfind('\n', ran.out.size() - 2) + 1)) < 1e-4);  // the last line: PyTorch may warn before it
    return true;
}

// Every operator of images once.
Graph every_operator() {
    GraphBuilder b("every operator \"quoted\"");
    std::string x = b.input("class", {2, 4, 12, 12});  // a Python keyword
    x = b.relu("r1", b.norm("a.0.bn", b.conv("a.0", x, {.out = 8, .kernel = 3, .padding = 1, .bias = true})));
    std::string y = b.node("silu", "s", {b.conv("a.0.deep", x, {.out = 8, .kernel = 3, .stride = 2, .padding = 1, .groups = 4})});
    std::string z = b.pool("max_pool", "m", x, 3, 2, 1);
    y = b.add("sum", y, z);
    std::string p =
        b.node("avg_pool", "avg", {y}, {{"kernel", std::int64_t{3}}, {"stride", std::int64_t{1}}, {"padding", std::int64_t{1}}, {"count_padding", false}});
    y = b.node("concat", "cat", {y, b.node("relu6", "r6", {p})});
    std::string gate = b.node("global_avg_pool", "pool", {y});
    y = b.node("mul", "gated", {y, gate});
    std::string tokens = b.node("transpose", "order", {b.node("reshape", "tokens", {y}, {{"shape", std::vector<std::int64_t>{0, 0, -1}}})},
                                {{"order", std::vector<std::int64_t>{0, 2, 1}}});
    std::string learned = b.node("parameter", "embed.position", {}, {{"shape", std::vector<std::int64_t>{1, 36, 16}}});
    tokens = b.node("layer_norm", "ln", {b.add("with position", tokens, learned)});
    std::string back = b.node("transpose", "back", {tokens}, {{"order", std::vector<std::int64_t>{0, 2, 1}}});
    std::string scores = b.node("softmax", "soft", {b.node("scale", "scale", {b.node("matmul", "scores", {tokens, back})}, {{"value", 0.25}})});
    std::string out = b.node("gelu", "g", {b.linear("fc", b.node("flatten", "flat", {b.node("matmul", "context", {scores, tokens})}), 10)});
    return b.finish({out, y});
}

Graph with_domain(Domain d) {
    GraphBuilder b("restricted");
    std::string x = b.input("x", {2, 16, 8, 8});
    b.conv("conv", x, {.out = 16, .kernel = 3, .padding = 1, .bias = true});
    Graph g = b.finish({"conv"});
    g.nodes[0].domain = std::move(d);
    return g;
}

}  // namespace

TEST_CASE("network.py computes what the interpreter computes, operator by operator", "[flow][report]") {
    same_in_torch(every_operator(), "network.py computes what the interpreter computes, operator by operator");
}

TEST_CASE("network.py has words for every operator with loops", "[flow][report]") {
    for (const LoopOperator& row : loop_operators()) {
        INFO(row.name);
        if (!same_in_torch(test::loop_graph(row), "network.py has words for every operator with loops")) return;
    }
}

TEST_CASE("network.py keeps to every kind of restriction", "[flow][report]") {
    const char* name = "network.py keeps to every kind of restriction";
    const std::vector<Domain> domains{
        domain({{"co%4 == ci%4"}}),                                                                  // interleaved groups
        domain({{"0 <= co/8%2 < 1", "co/4%2 == ci/8%2"}, {"1 <= co/8%2 < 2", "co/2%4 == ci/4%4"}}),  // S3
        domain({{"oh/4%2 == ci/8%2"}}),                                                              // S1
        domain({{"0 <= oh%2 < 1", "0 <= ow%2 < 1"}}, Restore::repeat),                               // every second row and column
        domain({{"0 <= co/8%2 < 1"}}, Restore::repeat),
        domain({{"0 <= co/8%2 < 1"}}, Restore::zero),
        domain({{"1 <= ci%2 < 2", "0 <= kh%3 < 2"}}),                                          // part of the input and of the kernel
        domain({{"0 <= co/8%2 < 1", "0 <= oh%2 < 1"}, {"1 <= co/8%2 < 2"}}, Restore::repeat),  // sources that depend on each other
    };
    for (const Domain& d : domains) {
        INFO(to_string(d));
        if (!same_in_torch(with_domain(d), name)) return;
    }
}

TEST_CASE("network.py restricts linear layers and matrix products too", "[flow][report]") {
    GraphBuilder b("tokens");
    b.linear("fc", b.input("x", {2, 6, 8}), 12);
    GraphBuilder c("product");
    std::string a = c.input("a", {2, 4, 8}), d = c.input("b", {2, 8, 6});
    c.node("matmul", "product", {a, d});
    Graph tokens = b.finish({"fc"}), product = c.finish({"product"});
    tokens.nodes[0].domain = domain({{"co/6%2 == ci/4%2"}});
    product.nodes[0].domain = domain({{"i/2%2 == k/4%2"}});
    if (!same_in_torch(tokens, "network.py restricts linear layers and matrix products too")) return;
    same_in_torch(product, "network.py restricts linear layers and matrix products too");
}

TEST_CASE("network.py takes every name for a node, and a number for a parameter", "[flow][report]") {
    GraphBuilder b("names");
    std::string x = b.input("float", {2, 4, 6, 6});
    for (const char* name : {"forward", "forward_", "training", "..", "a.", "_", "state_dict.train", "__init__", "__init___", "run_onnx"})
        x = b.conv(name, x, {.out = 4, .kernel = 1, .bias = true});
    const std::string one = b.node("parameter", "eval", {}, {{"shape", std::vector<std::int64_t>{}}});
    same_in_torch(b.finish({b.node("mul", "apply", {x, one})}), "network.py takes every name for a node, and a number for a parameter");
}

TEST_CASE("network.py of a transformer from the zoo", "[flow][report]") {
    same_in_torch(load_graph("zoo:bert-tiny"), "network.py of a transformer from the zoo");
}
