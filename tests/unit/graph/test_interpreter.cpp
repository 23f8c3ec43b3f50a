#include <catch2/catch.hpp>

#include <cmath>

#include "base/error.hpp"
#include "graph/builder.hpp"
#include "graph/flops.hpp"
#include "graph/interpreter.hpp"
#include "graph/load.hpp"
#include "graph/model_json.hpp"
#include "graph/onnx/evaluate/evaluate.hpp"
#include "graph/onnx/export.hpp"
#include "graph/onnx/onnx.hpp"
#include "graph/operators.hpp"
#include "graph/weights.hpp"
#include "graph/zoo/zoo.hpp"
#include "tests/small_graphs.hpp"

using namespace loopegg;

namespace {

Tensor run_one(const std::string& op, std::vector<Tensor> inputs, std::map<std::string, Attr> attrs = {}, Weights weights = {}) {
    GraphBuilder b("one");
    std::vector<std::string> names;
    Tensors values;
    for (const Tensor& t : inputs) {
        names.push_back(b.input("x" + std::to_string(names.size()), t.shape));
        values[names.back()] = t;
    }
    if (names.empty()) b.input("unused", {1}), values["unused"] = {{1}, {0}};
    Graph g = b.finish({b.node(op, "y", names, std::move(attrs))});
    return interpret(g, weights, values).at("y");
}

Tensor counting(Shape shape) {
    Tensor t{shape, {}};
    for (std::int64_t i = 0; i < element_count(shape); ++i) t.values.push_back(static_cast<float>(i % 7) - 3);
    return t;
}

Graph conv(Domain domain, std::int64_t groups = 1, std::int64_t stride = 1) {
    GraphBuilder b("conv");
    std::string y = b.conv("y", b.input("x", {2, 8, 6, 6}), {.out = 8, .kernel = 3, .stride = stride, .padding = 1, .groups = groups, .bias = true});
    Graph g = b.finish({y});
    g.nodes[0].domain = std::move(domain);
    complete(g);
    return g;
}

}  // namespace

TEST_CASE("each operator on an example worked out by hand", "[unit][graph]") {
    using Ints = std::vector<std::int64_t>;
    auto values = [](const Tensor& t) { return t.values; };
    Tensor line{{1, 4}, {-1, 0, 2, 8}};
    CHECK(values(run_one("relu", {line})) == std::vector<float>{0, 0, 2, 8});
    CHECK(values(run_one("relu6", {line})) == std::vector<float>{0, 0, 2, 6});
    CHECK(run_one("silu", {line}).values[2] == Approx(2 / (1 + std::exp(-2.0))));
    CHECK(run_one("gelu", {line}).values[2] == Approx(1.9544997));
    CHECK(values(run_one("scale", {line}, {{"value", 0.5}})) == std::vector<float>{-0.5, 0, 1, 4});
    CHECK(values(run_one("add", {line, {{1}, {1}}})) == std::vector<float>{0, 1, 3, 9});
    CHECK(values(run_one("mul", {{{2, 1}, {2, 3}}, {{2}, {1, 10}}})) == std::vector<float>{2, 20, 3, 30});
    CHECK(values(run_one("softmax", {{{2, 2}, {0, 0, 5, 5}}})) == std::vector<float>{0.5, 0.5, 0.5, 0.5});
    CHECK(run_one("softmax", {{{2, 1}, {0, std::log(3.0f)}}}, {{"axis", std::int64_t{0}}}).values[1] == Approx(0.75));
    CHECK(values(run_one("concat", {{{2, 1}, {1, 2}}, {{2, 2}, {3, 4, 5, 6}}})) == std::vector<float>{1, 3, 4, 2, 5, 6});
    CHECK(values(run_one("transpose", {{{2, 3}, {1, 2, 3, 4, 5, 6}}}, {{"order", Ints{1, 0}}})) == std::vector<float>{1, 4, 2, 5, 3, 6});
    CHECK(run_one("reshape", {counting({2, 6})}, {{"shape", Ints{0, 3, -1}}}).shape == Shape{2, 3, 2});
    CHECK(run_one("flatten", {counting({2, 3, 4})}).shape == Shape{2, 12});
    CHECK(values(run_one("max_pool", {{{1, 1, 2, 2}, {1, 2, 3, 4}}}, {{"kernel", Ints{2, 2}}})) == std::vector<float>{4});
    Tensor four{{1, 1, 2, 2}, {4, 4, 4, 4}};
    CHECK(run_one("avg_pool", {four}, {{"kernel", Ints{3, 3}}, {"stride", Ints{1, 1}}, {"padding", Ints{1, 1}}}).values[0] == Approx(16.0 / 9));
    CHECK(run_one("avg_pool", {four}, {{"kernel", Ints{3, 3}}, {"stride", Ints{1, 1}}, {"padding", Ints{1, 1}}, {"count_padding", false}}).values[0] == 4);
    CHECK(values(run_one("global_avg_pool", {{{1, 2, 1, 2}, {1, 3, 5, 7}}})) == std::vector<float>{2, 6});
    CHECK(values(run_one("matmul", {{{1, 2, 2}, {1, 2, 3, 4}}, {{1, 2, 1}, {1, 1}}})) == std::vector<float>{3, 7});
    CHECK(values(run_one("linear", {{{1, 2}, {1, 2}}}, {{"out_features", std::int64_t{2}}},
                         {{"y.weight", {{2, 2}, {1, 0, 1, 1}}}, {"y.bias", {{2}, {10, 20}}}})) == std::vector<float>{11, 23});
    CHECK(run_one("batch_norm", {{{1, 1}, {5}}}, {{"eps", 0.0}},
                  {{"y.weight", {{1}, {2}}}, {"y.bias", {{1}, {1}}}, {"y.running_mean", {{1}, {3}}}, {"y.running_var", {{1}, {4}}}})
              .values[0] == 3);
    CHECK(run_one("layer_norm", {{{1, 2}, {1, 3}}}, {{"eps", 0.0}}, {{"y.weight", {{2}, {1, 1}}}, {"y.bias", {{2}, {0, 5}}}}).values ==
          std::vector<float>{-1, 6});
    CHECK(run_one("parameter", {}, {{"shape", Ints{2}}}, {{"y", {{2}, {1, 2}}}}).values == std::vector<float>{1, 2});
    Tensor image{{1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}};
    std::map<std::string, Attr> attrs{{"out_channels", std::int64_t{1}}, {"kernel", std::int64_t{2}}, {"bias", false}};
    Weights corner{{"y.weight", {{1, 1, 2, 2}, {1, 0, 0, 1}}}};
    CHECK(values(run_one("conv2d", {image}, attrs, corner)) == std::vector<float>{6, 8, 12, 14});
    attrs["stride"] = std::int64_t{2}, attrs["padding"] = std::int64_t{1};
    CHECK(values(run_one("conv2d", {image}, attrs, corner)) == std::vector<float>{1, 3, 7, 14});
    attrs["stride"] = std::int64_t{1}, attrs["padding"] = std::int64_t{0}, attrs["dilation"] = std::int64_t{2};
    CHECK(values(run_one("conv2d", {image}, attrs, corner)) == std::vector<float>{10});
}

TEST_CASE("every operator of the table is interpreted", "[unit][graph]") {
    // A network of the zoo holds most; what is in none of them is above.
    for (const char* name : {"bert-tiny", "|nor_conv_3x3~0|+|nor_conv_1x1~0|avg_pool_3x3~1|+|skip_connect~0|none~1|nor_conv_3x3~2|"}) {
        Graph g = zoo_graph(name);
        Tensor y = interpret(g, initial_weights(g, 1), {{g.inputs[0].name, normal_tensor(g.inputs[0].shape, 2, "x")}}).at(g.outputs[0]);
        CHECK(std::all_of(y.values.begin(), y.values.end(), [](float v) { return std::isfinite(v); }));
    }
}

TEST_CASE("a domain over weights computes what masked weights compute", "[unit][graph]") {
    // one half by 2, the other by 4
    Domain s3{{{{{{"co", 4, 2}, 0, 1}}, {{{"co", 2, 2}, {"ci", 4, 2}}}}, {{{{"co", 4, 2}, 1, 2}}, {{{"co", 1, 4}, {"ci", 2, 4}}}}}};
    Domain kernel{{{{{{"kh", 1, 3}, 1, 2}, {{"kw", 1, 3}, 0, 2}}, {}}}};
    for (const Domain& domain : {s3, kernel}) {
        Graph restricted = conv(domain), dense = conv({});
        Weights weights = initial_weights(dense, 4), masked = weights;
        std::vector<char> mask = weight_mask(restricted.nodes[0]);
        for (std::size_t i = 0; i < mask.size(); ++i)
            if (!mask[i]) masked["y.weight"].values[i] = 0;
        Tensors x{{"x", normal_tensor({2, 8, 6, 6}, 5, "x")}};
        CHECK(interpret(restricted, weights, x) == interpret(dense, masked, x));
    }
}

TEST_CASE("the whole nest computes what its instances compute one by one", "[unit][graph]") {
    const Domain each{{DomainPart{}}};  // one part without conditions: everything, by the test of each instance
    auto same = [&](const std::string& op, const std::vector<Shape>& inputs, std::map<std::string, Attr> attrs) {
        GraphBuilder b("one");
        std::vector<std::string> names;
        Tensors x;
        for (const Shape& shape : inputs) {
            names.push_back(b.input("x" + std::to_string(names.size()), shape));
            x[names.back()] = normal_tensor(shape, 7, names.back());
        }
        const Graph whole = b.finish({b.node(op, "y", names, std::move(attrs))});
        Graph one_by_one = whole;
        one_by_one.nodes[0].domain = each;
        const Weights weights = initial_weights(whole, 8);
        CHECK(interpret(whole, weights, x) == interpret(one_by_one, weights, x));
    };
    using Ints = std::vector<std::int64_t>;
    for (const Ints& kernel : {Ints{1, 1}, Ints{3, 3}, Ints{1, 5}})
        for (const Ints& stride : {Ints{1, 1}, Ints{2, 3}})
            for (const Ints& padding : {Ints{0, 0}, Ints{2, 4}})  // padding beyond what a window needs
                for (const Ints& dilation : {Ints{1, 1}, Ints{2, 1}})
                    for (std::int64_t groups : {1, 2})
                        same("conv2d", {{2, 4, 7, 6}},
                             {{"out_channels", std::int64_t{6}},
                              {"kernel", kernel},
                              {"stride", stride},
                              {"padding", padding},
                              {"dilation", dilation},
                              {"groups", groups},
                              {"bias", true}});
    same("linear", {{2, 3, 70}}, {{"out_features", std::int64_t{5}}});
    same("matmul", {{3, 4, 130}, {3, 130, 2}}, {});
}

TEST_CASE("restored outputs are copies or zero", "[unit][graph]") {
    Domain rows{{{{{{"oh", 1, 2}, 0, 1}, {{"ow", 1, 2}, 0, 1}}, {}}}, Restore::repeat};
    Tensors x{{"x", normal_tensor({2, 8, 6, 6}, 5, "x")}};
    Graph dense = conv({}), restricted = conv(rows);
    Weights weights = initial_weights(dense, 4);
    weights["y.bias"].values.assign(8, 0.25f);
    Tensor full = interpret(dense, weights, x).at("y"), kept = interpret(restricted, weights, x).at("y");
    for (std::size_t i = 0; i < full.values.size(); ++i) {
        std::size_t ow = i % 6, oh = i / 6 % 6;
        CHECK(kept.values[i] == full.values[i - ow % 2 - 6 * (oh % 2)]);
    }
    rows.restore = Restore::zero;
    Tensor zeroed = interpret(conv(rows), weights, x).at("y");
    CHECK(zeroed.values[0] == full.values[0]);
    CHECK(zeroed.values[1] == 0);
    CHECK(macs(conv(rows).nodes[0]) * 4 == macs(dense.nodes[0]));
    CHECK(parameters(conv(rows)) == parameters(dense));
}

TEST_CASE("a wrong input is refused", "[errors][graph]") {
    Graph g = conv({});
    CHECK_THROWS_WITH(interpret(g, initial_weights(g), {}), Catch::Contains("no value for the input 'x'"));
    CHECK_THROWS_WITH(interpret(g, initial_weights(g), {{"x", normal_tensor({1}, 0, "")}}), Catch::Contains("the network takes 2x8x6x6"));
}

namespace {

OnnxTensor for_onnx(const Tensor& t) { return {OnnxTensor::Kind::float32, t.shape, t.values}; }

}  // namespace

TEST_CASE("an operator with loops is written and read back", "[unit][graph]") {
    for (const LoopOperator& row : loop_operators()) {
        INFO(row.name);
        const Graph graph = test::loop_graph(row);
        CHECK(read_model(make_source("m.json", write_model(graph))) == graph);
        if (!row.onnx.empty()) CHECK(import_onnx("m.onnx", export_onnx(graph, {})).graph == graph);
    }
}

TEST_CASE("an operator with loops computes what its ONNX operator says", "[unit][graph]") {
    for (const LoopOperator& row : loop_operators()) {
        if (row.onnx.empty()) continue;
        INFO(row.name);
        const Graph graph = test::loop_graph(row);
        Tensors inputs;
        std::vector<OnnxTensor> given;
        for (const GraphInput& in : graph.inputs) given.push_back(for_onnx(inputs[in.name] = normal_tensor(in.shape, 3, in.name)));
        std::vector<const OnnxTensor*> operands;
        for (const OnnxTensor& t : given) operands.push_back(&t);
        const OnnxModel model = onnx_model(graph, nullptr);
        REQUIRE(model.nodes.size() == 1);
        const OnnxTensor wanted = evaluate(model.nodes[0], operands, model.opset)[0];
        const Tensor got = interpret(graph, {}, inputs).at("y");
        REQUIRE(got.shape == wanted.dims);
        for (std::size_t i = 0; i < got.values.size(); ++i) CHECK(got.values[i] == Approx(wanted.floats[i]).epsilon(1e-5));
    }
}

TEST_CASE("a window that does not fit, and an input of another rank, are pointed at", "[errors][graph]") {
    auto complaint = [](const std::string& shape, const std::string& attrs) -> std::string {
        try {
            read_model(make_source("m.json", R"({"loopegg": 1, "name": "m", "inputs": [{"name": "x", "shape": )" + shape +
                                                 R"(}], "outputs": ["y"], "nodes": [{"name": "y", "op": "max_pool1d", "inputs": ["x"], "attrs": )" + attrs +
                                                 "}]}"));
        } catch (const UserError& e) {
            return e.what();
        }
        return "";
    };
    CHECK_THAT(complaint("[1, 2, 4]", R"({"kernel": 5})"), Catch::Contains("a window of 5 does not fit into 4 with padding 0") && Catch::Contains("m.json:1:"));
    CHECK_THAT(complaint("[1, 2, 4]", R"({"kernel": 2, "padding": 2})"), Catch::Contains("more than half the kernel"));
    CHECK_THAT(complaint("[1, 2, 4, 4]", R"({"kernel": 2})"), Catch::Contains("max_pool1d needs an input of 3 dimensions (N C L), 'x' is 1x2x4x4"));
    CHECK(complaint("[1, 2, 4]", R"({"kernel": 2})").empty());
}
