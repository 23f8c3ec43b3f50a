#include <catch2/catch.hpp>

#include <cmath>
#include <cstdlib>
#include <random>

#include "fisher/engine.hpp"
#include "graph/builder.hpp"
#include "graph/domain_sets.hpp"
#include "graph/interpreter.hpp"
#include "graph/operators.hpp"
#include "graph/weights.hpp"
#include "graph/zoo/zoo.hpp"
#include "tests/small_graphs.hpp"

using namespace loopegg;

namespace {

double largest(const Tensor& t) {
    double m = 0;
    for (float v : t.values) m = std::max(m, static_cast<double>(std::abs(v)));
    return m;
}

double difference(const Tensor& a, const Tensor& b) {
    REQUIRE(a.shape == b.shape);
    double m = 0;
    for (std::size_t i = 0; i < a.values.size(); ++i) m = std::max(m, static_cast<double>(std::abs(a.values[i] - b.values[i])));
    return m;
}

// Largest difference between LibTorch and the interpreter, relative to the largest value.
double apart(const Graph& graph, std::uint64_t seed = 1) {
    Weights weights = initial_weights(graph, seed);
    // Statistics and norms that are not 1 and 0, so that they are seen to be used.
    for (auto& [name, tensor] : weights)
        if (name.ends_with(".running_mean") || name.ends_with(".bias")) tensor = normal_tensor(tensor.shape, seed, name);
    for (auto& [name, tensor] : weights)
        for (float& v : tensor.values)
            if (name.ends_with(".running_mean") || name.ends_with(".bias"))
                v *= 0.1f;
            else if (name.ends_with(".running_var"))
                v = 0.8f;
    Tensors inputs;
    std::vector<Tensor> in;
    for (const GraphInput& input : graph.inputs) {
        in.push_back(normal_tensor(input.shape, seed, input.name));
        inputs[input.name] = in.back();
    }
    Tensors expected = interpret(graph, weights, inputs);
    std::vector<Tensor> got = torch_runtime().forward(graph, weights, in, NormMode::running);
    REQUIRE(got.size() == graph.outputs.size());
    double worst = 0;
    for (std::size_t i = 0; i < got.size(); ++i)
        worst = std::max(worst, difference(expected.at(graph.outputs[i]), got[i]) / std::max(1e-6, largest(expected.at(graph.outputs[i]))));
    return worst;
}

// ImageNet networks run on images of 64 instead of 224: the same nodes at a twelfth of the work.
Graph small(Graph graph) {
    for (GraphInput& input : graph.inputs)
        if (input.shape.size() == 4 && input.shape[2] == 224 && graph.name.find("vit") == std::string::npos) input.shape[2] = input.shape[3] = 64;
    complete(graph);
    return graph;
}

Graph conv_graph(std::int64_t groups, std::int64_t stride, std::int64_t dilation, std::int64_t padding, bool bias) {
    GraphBuilder b("conv");
    std::string x = b.input("x", {2, 8, 8, 8});
    return b.finish({b.node("conv2d", "y", {x},
                            {{"out_channels", std::int64_t{16}},
                             {"kernel", std::int64_t{3}},
                             {"stride", stride},
                             {"padding", padding},
                             {"dilation", dilation},
                             {"groups", groups},
                             {"bias", bias}})});
}

// A random condition over the node's axes, or none when the draw does not fit.
DomainPart random_part(const std::vector<Axis>& axes, std::mt19937& random) {
    DomainPart part;
    auto digit = [&](const Axis& axis, std::int64_t radix) { return Digit{axis.name, radix ? axis.extent / radix : 1, radix}; };
    int conditions = 1 + static_cast<int>(random() % 3);
    for (int c = 0; c < conditions; ++c) {
        const Axis &a = axes[1 + random() % (axes.size() - 1)], &b = axes[1 + random() % (axes.size() - 1)];  // never the batch
        if (random() % 2) {
            if (a.extent < 2) continue;
            std::int64_t radix = a.extent % 4 == 0 && random() % 2 ? a.extent / 2 : a.extent;
            Digit d{a.name, a.extent / radix == 1 ? 1 : (random() % 2 ? a.extent / radix : 1), radix};
            std::int64_t lo = static_cast<std::int64_t>(random()) % radix, hi = lo + 1 + static_cast<std::int64_t>(random()) % (radix - lo);
            part.ranges.push_back({d, lo, hi});
        } else if (a.name != b.name) {
            for (std::int64_t g : {4, 2})
                if (a.extent % g == 0 && b.extent % g == 0) {
                    part.diagonals.push_back({digit(a, g), digit(b, g)});
                    break;
                }
        }
    }
    return part;
}

}  // namespace

TEST_CASE("every operator with loops gives what the interpreter gives", "[unit][fisher]") {
    for (const LoopOperator& row : loop_operators()) {
        INFO(row.name);
        CHECK(apart(test::loop_graph(row)) < 1e-6);
    }
}

TEST_CASE("every zoo network gives what the interpreter gives", "[unit][fisher]") {
    for (const ZooEntry& entry : zoo()) {
        // One of each family; the larger brothers have the same operators, and wait for LOOPEGG_DEEP=1.
        if (!std::getenv("LOOPEGG_DEEP") &&
            (entry.name == "resnet34" || entry.name == "densenet169" || entry.name == "densenet201" || entry.name == "densenet161"))
            continue;
        INFO(entry.name);
        CHECK(apart(small(entry.build())) < 1e-4);
    }
    CHECK(apart(zoo_graph("|nor_conv_3x3~0|+|nor_conv_1x1~0|skip_connect~1|+|avg_pool_3x3~0|none~1|nor_conv_3x3~2|")) < 1e-4);
}

TEST_CASE("restricted convolutions give what the interpreter gives", "[unit][fisher]") {
    std::mt19937 random(7);
    int tried = 0;
    for (int round = 0; round < 400; ++round) {
        Graph graph = conv_graph(random() % 3 ? 1 : 2, 1 + random() % 2, 1 + random() % 2, random() % 3, random() % 2);
        std::vector<Axis> axes = axes_of(graph.nodes[0]);
        Domain domain{{random_part(axes, random)}, random() % 2 ? Restore::repeat : Restore::zero};
        if (random() % 3 == 0) {  // two parts: a cut of one axis
            std::vector<Axis> cuttable;
            for (const Axis& axis : axes)
                if (axis.extent % 2 == 0 && axis.name != "n") cuttable.push_back(axis);
            const Axis& axis = cuttable[random() % cuttable.size()];
            domain.parts.push_back(random_part(axes, random));
            domain.parts[0].ranges.push_back({{axis.name, 1, axis.extent}, 0, axis.extent / 2});
            domain.parts[1].ranges.push_back({{axis.name, 1, axis.extent}, axis.extent / 2, axis.extent});
        }
        try {
            graph.nodes[0].domain = domain;
            complete(graph);
        } catch (const std::exception&) {
            continue;
        }  // an empty or contradictory draw
        ++tried;
        INFO(to_string(domain));
        REQUIRE(apart(graph, static_cast<std::uint64_t>(round)) < 1e-5);
    }
    CHECK(tried > 150);
}

TEST_CASE("restricted linears and matrix products give what the interpreter gives", "[unit][fisher]") {
    auto linear = [](Domain domain) {
        GraphBuilder b("linear");
        Graph g = b.finish({b.linear("y", b.input("x", {3, 4, 8}), 12)});
        g.nodes[0].domain = std::move(domain);
        complete(g);
        return g;
    };
    CHECK(apart(linear({{{{}, {{{"co", 3, 4}, {"ci", 2, 4}}}}}})) < 1e-5);
    CHECK(apart(linear({{{{{{"co", 1, 12}, 0, 6}}, {}}}, Restore::repeat})) < 1e-5);
    CHECK(apart(linear({{{{{{"n", 1, 2}, 0, 1}, {{"ci", 1, 8}, 2, 6}}, {}}}, Restore::zero})) < 1e-5);
    GraphBuilder b("matmul");
    std::string x = b.input("x", {2, 4, 8}), y = b.input("y", {2, 8, 6});
    Graph g = b.finish({b.node("matmul", "z", {x, y})});
    g.nodes[0].domain = {{{{}, {{{"i", 2, 2}, {"k", 4, 2}}}}}};
    complete(g);
    CHECK(apart(g) < 1e-5);
}

TEST_CASE("a depthwise restriction of many channels runs as groups", "[unit][fisher]") {
    GraphBuilder b("depthwise");
    std::string x = b.input("x", {1, 64, 5, 5});
    Graph g = b.finish({b.conv("y", x, {.out = 128, .kernel = 3, .padding = 1})});
    g.nodes[0].domain = {{{{}, {{{"co", 2, 64}, {"ci", 1, 64}}}}}};
    complete(g);
    CHECK(apart(g) < 1e-5);
    // Interleaved: output channel c reads the inputs that are c modulo 4.
    g.nodes[0].domain = {{{{}, {{{"co", 1, 4}, {"ci", 1, 4}}}}}};
    complete(g);
    CHECK(apart(g) < 1e-5);
}
