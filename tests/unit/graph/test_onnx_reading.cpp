// What the operators of others' ONNX files say is read as they mean it: each case was wrong, or refused for no reason, once.
#include <catch2/catch.hpp>

#include <cmath>

#include "graph/onnx/evaluate/evaluate.hpp"
#include "tests/made_onnx.hpp"

using namespace loopegg;
using namespace loopegg::test;

namespace {

std::vector<float> values(const Tensor& t) { return t.values; }

}  // namespace

TEST_CASE("a cast to whole numbers or truth values is no identity", "[unit][graph]") {
    Made m({2, 3});
    m.node("Cast", {"x"}, {"i"}, {{"to", std::int64_t{7}}}).node("Cast", {"i"}, {"y"}, {{"to", std::int64_t{1}}}).output("y");
    CHECK(values(m.run()) == std::vector<float>{0, 0, 0, 1, 1, -1});
    Made b({2, 2});
    b.constant("half", floats({}, {0.5f}))
        .node("Sub", {"x", "half"}, {"d"})
        .node("Cast", {"d"}, {"t"}, {{"to", std::int64_t{9}}})
        .node("Cast", {"t"}, {"y"}, {{"to", std::int64_t{1}}})
        .output("y");
    CHECK(values(b.run()) == std::vector<float>{1, 0, 1, 1});
}

TEST_CASE("Shape keeps to its start and end", "[unit][graph]") {
    Made m({2, 3, 4, 5});
    m.node("Shape", {"x"}, {"s"}, {{"start", std::int64_t{1}}, {"end", std::int64_t{-1}}})
        .node("Cast", {"s"}, {"f"}, {{"to", std::int64_t{1}}})
        .node("Identity", {"f"}, {"y"})
        .output("y");
    CHECK(values(m.run()) == std::vector<float>{3, 4});
}

TEST_CASE("constants broadcast when they are folded", "[unit][graph]") {
    Made m({1});
    m.constant("a", floats({4, 1}, {0, 10, 20, 30})).constant("b", floats({1, 4}, {1, 2, 3, 4})).node("Add", {"a", "b"}, {"y"}).output("y");
    const Tensor y = m.run();
    CHECK(y.shape == Shape{4, 4});
    CHECK(y.values == std::vector<float>{1, 2, 3, 4, 11, 12, 13, 14, 21, 22, 23, 24, 31, 32, 33, 34});
}

TEST_CASE("a constant that leaves the network keeps its values, in ONNX again too", "[unit][graph]") {
    Made m({1});
    m.constant("c", floats({3}, {1, -2, 3}))
        .node("Constant", {}, {"k"}, {{"value", floats({2}, {4, 5})}})
        .node("Relu", {"x"}, {"y"})
        .output("y")
        .output("c")
        .output("k");
    CHECK(values(m.run("c")) == std::vector<float>{1, -2, 3});
    CHECK(values(m.run("k")) == std::vector<float>{4, 5});
    const Model read = m.read(), back = import_onnx("m.onnx", export_onnx(read.graph, read.weights));
    CHECK(back.graph.outputs == std::vector<std::string>{"y", "c", "k"});
    CHECK(interpret(back.graph, back.weights, {{"x", Tensor{{1}, {1}}}}).at("c").values == std::vector<float>{1, -2, 3});
}

TEST_CASE("a constant with more dimensions gives them to a product", "[unit][graph]") {
    Made m({2, 2});
    m.constant("c", floats({1, 1, 1}, {2})).node("Mul", {"x", "c"}, {"y"}).output("y");
    CHECK(m.run().shape == Shape{1, 2, 2});
    Made d({2, 2});
    d.constant("c", floats({1, 1, 1}, {2})).node("Div", {"x", "c"}, {"y"}).output("y");
    CHECK(d.run().shape == Shape{1, 2, 2});
}

TEST_CASE("Dropout in training mode is refused, otherwise it does nothing", "[unit][graph]") {
    auto made = [](std::int64_t training) {
        Made m({2, 2});
        OnnxTensor flag{Kind::int64, {}, {}, {}, {training}};
        flag.type = 9;
        m.constant("ratio", floats({}, {0.5f})).constant("training", flag).node("Dropout", {"x", "ratio", "training"}, {"y"}).output("y");
        return m;
    };
    CHECK_THROWS_WITH(made(1).read(), Catch::Contains("training mode"));
    CHECK(values(made(0).run()) == counted({2, 2}).floats);
}

TEST_CASE("outputs keep their names", "[unit][graph]") {
    Made m({1, 3});
    m.constant("fc.weight", counted({2, 3}))
        .node("Gemm", {"x", "fc.weight"}, {"logits"}, {{"transB", std::int64_t{1}}})
        .node("Identity", {"logits"}, {"again"})
        .output("logits")
        .output("again")
        .output("x");
    const Model read = m.read();
    REQUIRE(read.graph.outputs.size() == 3);
    CHECK(read.graph.outputs[0] == "logits");
    CHECK(read.graph.outputs[1] == "again");
    CHECK(read.graph.find("fc") != nullptr);  // weights keep theirs
    const Model back = import_onnx("m.onnx", export_onnx(read.graph, read.weights));
    CHECK(back.graph == read.graph);
    CHECK(back.weights == read.weights);
    CHECK(parse_onnx("m", export_onnx(read.graph, read.weights)).outputs[0].name == "logits");
}

TEST_CASE("a Gemm takes its bias as a row, a number, or a column of its own", "[unit][graph]") {
    for (const OnnxTensor& bias :
         {floats({1, 2}, {10, 20}), floats({2}, {10, 20}), floats({}, {10}), floats({1}, {10}), floats({2, 1}, {10, 20}), floats({2, 2}, {1, 2, 3, 4})}) {
        Made m({2, 3});
        m.constant("w", counted({3, 2})).constant("b", bias).node("Gemm", {"x", "w", "b"}, {"y"}, {{"alpha", 0.5f}, {"beta", 2.0f}}).output("y");
        const OnnxTensor x = counted({2, 3}), w = counted({3, 2});
        const OnnxTensor* in[] = {&x, &w, &bias};
        CHECK(values(m.run()) == evaluate(m.model.nodes[0], in, 18)[0].floats);
    }
}

TEST_CASE("nodes may stand in any order, but not in a circle", "[unit][graph]") {
    Made m({1, 2});
    m.node("Relu", {"a"}, {"y"}).node("Neg", {"x"}, {"a"}).output("y");
    CHECK(values(m.run()) == std::vector<float>{0, 0});
    Made c({1, 2});
    c.node("Add", {"x", "b"}, {"a"}).node("Relu", {"a"}, {"b"}).output("b");
    CHECK_THROWS_WITH(c.read(), Catch::Contains("cycle"));
    Made u({1, 2});
    u.node("Relu", {"nowhere"}, {"y"}).output("y");
    CHECK_THROWS_WITH(u.read(), Catch::Contains("nothing makes it"));
}

// Two implementations of one meaning: our operators, interpreted, and the evaluator of ONNX's.

TEST_CASE("native operators compute what their ONNX operators say", "[unit][graph]") {
    struct Case {
        const char* what;
        Ints shape;
        OnnxNode node;
        std::vector<std::pair<std::string, OnnxTensor>> constants{};
        bool native = true;
    };
    auto node = [](std::string op, std::vector<std::string> in, std::map<std::string, OnnxAttr> attrs = {}) {
        return OnnxNode{std::move(op), "n", std::move(in), {"y"}, std::move(attrs)};
    };
    std::vector<Case> cases;
    for (const char* op :
         {"Relu", "Sigmoid", "Tanh", "HardSwish", "LeakyRelu", "Elu", "Erf", "Exp", "Abs", "Neg", "Reciprocal", "Floor", "Ceil", "Round", "Softsign"})
        cases.push_back({op, {2, 3}, node(op, {"x"})});
    for (const char* op : {"Softplus", "Selu", "Mish", "Sign", "Sin", "Log"}) cases.push_back({op, {2, 3}, node(op, {"x"}), {}, false});
    cases.push_back({"leaky", {2, 3}, node("LeakyRelu", {"x"}, {{"alpha", 0.3f}})});
    cases.push_back({"hard sigmoid", {2, 3}, node("HardSigmoid", {"x"}, {{"alpha", 1.0f / 6}, {"beta", 0.5f}})});
    cases.push_back({"hard sigmoid of ONNX", {2, 3}, node("HardSigmoid", {"x"}), {}, false});
    cases.push_back({"gelu tanh", {2, 3}, node("Gelu", {"x"}, {{"approximate", std::string("tanh")}})});
    cases.push_back({"clip", {2, 3}, node("Clip", {"x", "lo", "hi"}), {{"lo", floats({}, {-0.5f})}, {"hi", floats({}, {0.6f})}}});
    cases.push_back({"clip low", {2, 3}, node("Clip", {"x", "lo"}), {{"lo", floats({}, {-0.5f})}}});
    for (const char* op : {"Add", "Sub", "Mul", "Div", "Max", "Min"}) {
        cases.push_back({op, {2, 3, 4}, node(op, {"x", "c"}), {{"c", counted({3, 1})}}});
        cases.push_back({op, {3, 1}, node(op, {"c", "x"}), {{"c", counted({2, 3, 4})}}});
        cases.push_back({"five runs", {2, 1, 3, 1, 2}, node(op, {"x", "c"}), {{"c", counted({1, 3, 1, 2, 1})}}});
    }
    cases.push_back({"prelu", {2, 3, 4}, node("PRelu", {"x", "c"}), {{"c", counted({3, 1})}}});
    for (float e : {2.0f, 3.0f, 4.0f, -1.0f, -2.0f, 1.0f}) cases.push_back({"pow", {2, 3}, node("Pow", {"x", "e"}), {{"e", floats({}, {e})}}});
    cases.push_back({"pow 1.5", {2, 3}, node("Pow", {"x", "e"}), {{"e", floats({}, {1.5f})}}, false});
    for (std::int64_t keep : {0, 1})
        for (const char* op : {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceSumSquare"})
            for (const Ints& axes : {Ints{1}, Ints{-1}, Ints{0, 2}, Ints{1, 2}, Ints{2, 0, 1}})
                cases.push_back({op, {2, 3, 4}, node(op, {"x", "a"}, {{"keepdims", keep}}), {{"a", whole(axes)}}});
    cases.push_back({"mean of an image", {2, 3, 4, 5}, node("ReduceMean", {"x", "a"}, {{"keepdims", std::int64_t{0}}}), {{"a", whole({-1, -2})}}});
    cases.push_back({"slice",
                     {4, 5, 6},
                     node("Slice", {"x", "s", "e", "a", "t"}),
                     {{"s", whole({1, -3})}, {"e", whole({4, 100})}, {"a", whole({0, -1})}, {"t", whole({2, 1})}}});
    cases.push_back({"slice backwards",
                     {4, 5},
                     node("Slice", {"x", "s", "e", "a", "t"}),
                     {{"s", whole({-1})}, {"e", whole({-100})}, {"a", whole({1})}, {"t", whole({-2})}},
                     false});
    cases.push_back({"gather one", {4, 5, 6}, node("Gather", {"x", "i"}, {{"axis", std::int64_t{1}}}), {{"i", {Kind::int64, {}, {}, {}, {-2}}}}});
    cases.push_back({"gather even steps", {4, 5}, node("Gather", {"x", "i"}, {{"axis", std::int64_t{1}}}), {{"i", whole({0, 2, 4})}}});
    cases.push_back({"gather all into a shape", {6, 2}, node("Gather", {"x", "i"}), {{"i", {Kind::int64, {1, 6, 1}, {}, {}, {0, 1, 2, 3, 4, 5}}}}});
    cases.push_back(
        {"gather into a shape", {2, 6}, node("Gather", {"x", "i"}, {{"axis", std::int64_t{1}}}), {{"i", {Kind::int64, {2, 2}, {}, {}, {1, 2, 3, 4}}}}});
    cases.push_back(
        {"gather any", {4, 5}, node("Gather", {"x", "i"}, {{"axis", std::int64_t{0}}}), {{"i", {Kind::int64, {2, 2}, {}, {}, {3, 0, 0, -1}}}}, false});
    cases.push_back({"pad", {2, 3, 4}, node("Pad", {"x", "p", "v"}), {{"p", whole({0, 1, 2, 1, 0, 3})}, {"v", floats({}, {7})}}});
    for (const char* mode : {"reflect", "edge", "wrap"})
        cases.push_back({mode, {2, 3, 4}, node("Pad", {"x", "p"}, {{"mode", std::string(mode)}}), {{"p", whole({0, 1, 2, 1, 0, 3})}}, false});
    cases.push_back({"expand", {3, 1}, node("Expand", {"x", "s"}), {{"s", whole({2, 1, 4})}}});
    cases.push_back(
        {"nearest",
         {1, 2, 3, 4},
         node("Resize", {"x", "", "s"},
              {{"mode", std::string("nearest")}, {"coordinate_transformation_mode", std::string("asymmetric")}, {"nearest_mode", std::string("floor")}}),
         {{"s", floats({4}, {1, 1, 2, 3})}}});
    cases.push_back({"linear", {1, 2, 3, 4}, node("Resize", {"x", "", "s"}, {{"mode", std::string("linear")}}), {{"s", floats({4}, {1, 1, 2, 1.5f})}}, false});
    for (const char* mode : {"DCR", "CRD"})
        cases.push_back({mode, {1, 8, 2, 3}, node("DepthToSpace", {"x"}, {{"blocksize", std::int64_t{2}}, {"mode", std::string(mode)}})});
    for (const char* mode : {"DCR", "CRD"})
        cases.push_back({"space to depth", {1, 2, 4, 6}, node("SpaceToDepth", {"x"}, {{"blocksize", std::int64_t{2}}, {"mode", std::string(mode)}})});
    for (std::int64_t ceil : {0, 1})
        for (std::int64_t counted_pads : {0, 1})
            for (const Ints& pads : {Ints{0, 0, 0, 0}, Ints{1, 1, 1, 1}, Ints{0, 1, 1, 0}})
                for (const char* op : {"MaxPool", "AveragePool"}) {
                    std::map<std::string, OnnxAttr> attrs{{"kernel_shape", Ints{3, 2}}, {"strides", Ints{2, 2}}, {"pads", pads}, {"ceil_mode", ceil}};
                    if (std::string(op) == "AveragePool") attrs["count_include_pad"] = counted_pads;
                    cases.push_back({op,
                                     {1, 2, 6, 7},
                                     node(op, {"x"}, attrs),
                                     {},
                                     !(std::string(op) == "AveragePool" && counted_pads && pads != Ints{0, 0, 0, 0} && (ceil || pads[0] != pads[2]))});
                }
    cases.push_back({"conv1d",
                     {1, 4, 9},
                     node("Conv", {"x", "w", "b"}, {{"strides", Ints{2}}, {"pads", Ints{1, 1}}, {"group", std::int64_t{2}}}),
                     {{"w", counted({4, 2, 3})}, {"b", counted({4})}}});
    cases.push_back(
        {"uneven conv", {1, 2, 6, 7}, node("Conv", {"x", "w"}, {{"strides", Ints{2, 1}}, {"pads", Ints{0, 1, 1, 0}}}), {{"w", counted({3, 2, 3, 3})}}});
    for (const char* same : {"SAME_UPPER", "SAME_LOWER", "VALID"})
        cases.push_back(
            {same, {1, 2, 6, 7}, node("Conv", {"x", "w"}, {{"strides", Ints{2, 2}}, {"auto_pad", std::string(same)}}), {{"w", counted({3, 2, 3, 3})}}});
    cases.push_back({"conv3d", {1, 2, 4, 4, 4}, node("Conv", {"x", "w"}), {{"w", counted({3, 2, 2, 2, 2})}}, false});
    for (const Ints& kernel : {Ints{1, 3, 2}, Ints{3, 1, 2}, Ints{3, 2, 1}}) {
        Ints strides, pads(6, 0);
        for (std::size_t d = 0; d < 3; ++d) strides.push_back(kernel[d] == 1 ? 1 : 2), pads[d] = kernel[d] == 3, pads[d + 3] = kernel[d] == 2;
        cases.push_back({"conv3d of slices",
                         {2, 2, 4, 5, 6},
                         node("Conv", {"x", "w", "b"}, {{"strides", strides}, {"pads", pads}}),
                         {{"w", counted({3, 2, kernel[0], kernel[1], kernel[2]})}, {"b", counted({3})}}});
    }
    cases.push_back({"col2im",
                     {1, 8, 12},
                     node("Col2Im", {"x", "i", "k"}, {{"pads", Ints{1, 0, 0, 0}}, {"strides", Ints{1, 1}}}),
                     {{"i", whole({3, 5})}, {"k", whole({2, 2})}},
                     false});
    cases.push_back({"conv transpose", {1, 2, 4, 4}, node("ConvTranspose", {"x", "w"}, {{"strides", Ints{2, 2}}}), {{"w", counted({2, 3, 3, 3})}}, false});
    cases.push_back({"instance norm", {2, 3, 4, 5}, node("InstanceNormalization", {"x", "s", "b"}), {{"s", counted({3})}, {"b", counted({3})}}});
    cases.push_back({"layer norm of two",
                     {2, 3, 4},
                     node("LayerNormalization", {"x", "s", "b"}, {{"axis", std::int64_t{1}}}),
                     {{"s", counted({3, 4})}, {"b", counted({3, 4})}}});
    cases.push_back({"softmax", {2, 3, 4}, node("Softmax", {"x"}, {{"axis", std::int64_t{1}}})});
    cases.push_back({"log softmax", {2, 3, 4}, node("LogSoftmax", {"x"}), {}, false});
    cases.push_back({"global max", {2, 3, 4, 5}, node("GlobalMaxPool", {"x"})});
    cases.push_back({"pool of lines", {2, 3, 9}, node("MaxPool", {"x"}, {{"kernel_shape", Ints{3}}, {"pads", Ints{1, 1}}})});
    cases.push_back({"pool of volumes", {2, 3, 5, 6, 7}, node("MaxPool", {"x"}, {{"kernel_shape", Ints{2, 3, 2}}, {"strides", Ints{2, 1, 2}}})});
    cases.push_back({"pool padded at one end", {2, 3, 9}, node("MaxPool", {"x"}, {{"kernel_shape", Ints{3}}, {"pads", Ints{0, 1}}}), {}, false});
    cases.push_back({"dilated pool", {2, 3, 9}, node("MaxPool", {"x"}, {{"kernel_shape", Ints{3}}, {"dilations", Ints{2}}}), {}, false});
    cases.push_back({"stretched product", {2, 1, 3, 4}, node("MatMul", {"x", "c"}), {{"c", counted({5, 4, 2})}}});
    cases.push_back({"product from the left", {4, 3}, node("MatMul", {"c", "x"}), {{"c", counted({2, 4})}}});
    cases.push_back({"einsum", {2, 3, 4}, node("Einsum", {"x", "c"}, {{"equation", std::string("bij,jk->bki")}}), {{"c", counted({4, 5})}}});
    cases.push_back({"einsum with a batch inside",
                     {1, 2, 3, 4, 5},
                     node("Einsum", {"x", "c"}, {{"equation", std::string("byhwc,hkc->byhwk")}}),
                     {{"c", counted({3, 2, 5})}}});
    cases.push_back(
        {"einsum that sums one side", {2, 3, 4}, node("Einsum", {"x", "c"}, {{"equation", std::string("bij,jk->bk")}}), {{"c", counted({4, 5})}}, false});
    cases.push_back({"cumsum", {2, 3}, node("CumSum", {"x", "a"}), {{"a", {Kind::int64, {}, {}, {}, {1}}}}, false});
    for (const Case& c : cases) {
        INFO(c.what << " " << c.node.op);
        Made m(c.shape);
        for (const auto& [name, t] : c.constants) m.constant(name, t);
        m.model.nodes.push_back(c.node);
        m.output("y");
        const OnnxTensor x = counted(c.shape);
        std::vector<const OnnxTensor*> in;
        for (const std::string& name : c.node.inputs) {
            const OnnxTensor* found = name == "x" ? &x : nullptr;
            for (const auto& [known, t] : c.constants)
                if (known == name) found = &t;
            in.push_back(found);
        }
        const OnnxTensor wanted = evaluate(c.node, in, 18)[0];
        const Model read = m.read();
        const bool opaque = std::any_of(read.graph.nodes.begin(), read.graph.nodes.end(), [](const Node& n) { return n.op == "onnx"; });
        CHECK(opaque == !c.native);
        auto near = [&](const Tensor& got) {
            if (got.shape != wanted.dims) return false;
            for (std::size_t i = 0; i < got.values.size(); ++i) {
                const bool both_nan = std::isnan(got.values[i]) && std::isnan(wanted.floats[i]);
                if (!both_nan && !(std::abs(got.values[i] - wanted.floats[i]) <= 1e-5 * std::max(1.0f, std::abs(wanted.floats[i])))) return false;
            }
            return true;
        };
        const Tensors given{{"x", {c.shape, x.floats}}};
        CHECK(near(interpret(read.graph, read.weights, given).at("y")));
        // What is written again is the same network.
        const Model back = import_onnx("m.onnx", export_onnx(read.graph, read.weights));
        CHECK(near(interpret(back.graph, back.weights, given).at("y")));
        CHECK(back.graph.outputs == read.graph.outputs);
    }
}

TEST_CASE("operators whose shape the data decides are refused by name and place", "[errors][graph]") {
    Made m({2, 2});
    m.node("NonZero", {"x"}, {"y"}).output("y");
    CHECK_THROWS_WITH(m.read(), Catch::Contains("NonZero 'n0'") && Catch::Contains("depends on its elements"));
    Made unknown({2, 2});
    unknown.node("Nonesuch", {"x"}, {"y"}).output("y");
    CHECK_THROWS_WITH(unknown.read(), Catch::Contains("Nonesuch 'n0': the operator is not supported"));
    Made huge({2, 2});
    huge.constant("s", whole({1 << 20, 1 << 20})).node("ConstantOfShape", {"s"}, {"c"}).node("Add", {"x", "c"}, {"y"}).output("y");
    CHECK_THROWS_WITH(huge.read(), Catch::Contains("2^28"));
}

TEST_CASE("whole numbers travel between opaque nodes and come in as inputs", "[unit][graph]") {
    Made m({1, 3});
    m.model.inputs[0].type = 7;
    m.constant("table", counted({5, 2})).node("Gather", {"table", "x"}, {"y"}).output("y");
    const Model read = m.read();
    CHECK(read.graph.inputs[0].dtype == "int64");
    const Tensor y = interpret(read.graph, read.weights, {{"x", {{1, 3}, {4, 0, 2}}}}).at("y");
    const std::vector<float> t = counted({5, 2}).floats;
    CHECK(y.values == std::vector<float>{t[8], t[9], t[0], t[1], t[4], t[5]});
    const OnnxModel written = parse_onnx("m", export_onnx(read.graph, read.weights));
    CHECK(written.inputs[0].type == 7);
    const Model back = import_onnx("m.onnx", serialize_onnx(written));
    CHECK(interpret(back.graph, back.weights, {{"x", {{1, 3}, {4, 0, 2}}}}).at("y") == y);
}

TEST_CASE("what a model may not say twice or cannot mean is refused", "[errors][graph]") {
    const auto plain = [] {
        Made m({1, 2});
        m.constant("w", floats({2}, {1, 2})).node("Add", {"x", "w"}, {"y"}).output("y");
        return m;
    };
    CHECK_NOTHROW(plain().read());
    Made twice = plain();
    twice.constant("w", floats({2}, {3, 4}));
    CHECK_THROWS_WITH(twice.read(), Catch::Contains("two initializers 'w'"));
    Made inputs = plain();
    inputs.model.inputs.push_back({"x", {1, 2}});
    CHECK_THROWS_WITH(inputs.read(), Catch::Contains("two inputs 'x'"));
    Made made = plain();
    made.node("Neg", {"x"}, {"w"});
    CHECK_THROWS_WITH(made.read(), Catch::Contains("'w' is made twice"));
    Made opset = plain();
    opset.model.opset = std::int64_t{1} << 62;
    CHECK_THROWS_WITH(opset.read({.upgrade = false}), Catch::Contains("there is no opset 4611686018427387904"));
    Made open = plain();
    open.model.inputs[0].shape[0] = 0;
    CHECK(open.read().graph.inputs[0].batch == "batch");
}
