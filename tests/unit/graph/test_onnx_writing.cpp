// What goes out as ONNX is what its reader needs to deploy it in place of the file that came in: names, opset, open batch, weights next to it, words.
#include <catch2/catch.hpp>

#include <algorithm>

#include <unistd.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "graph/builder.hpp"
#include "graph/interpreter.hpp"
#include "graph/model_json.hpp"
#include "graph/onnx/onnx.hpp"
#include "graph/onnx/onnx_model.hpp"
#include "graph/weights.hpp"

using namespace loopegg;
namespace fs = std::filesystem;

namespace {

using Ints = std::vector<std::int64_t>;

OnnxTensor floats(Ints dims) {
    OnnxTensor t{OnnxTensor::Kind::float32, dims};
    for (std::int64_t i = 0, n = element_count(dims); i < n; ++i) t.floats.push_back(0.125f * static_cast<float>(i % 11 - 5));
    return t;
}
OnnxTensor whole(Ints values) { return {OnnxTensor::Kind::int64, {static_cast<std::int64_t>(values.size())}, {}, {}, values}; }

// A classifier as others write one, with its batch open: convolution, pool, a reshape that names the batch of the moment, and a product.
OnnxModel classifier(std::int64_t opset) {
    OnnxModel m;
    m.producer = "somebody", m.opset = opset;
    m.inputs.push_back({"image", {-1, 4, 6, 6}}), m.inputs[0].symbols = {"N", "", "", ""};
    m.outputs.push_back({"logits", {-1, 3}}), m.outputs[0].symbols = {"N", ""};
    m.initializers = {{"conv.weight", floats({8, 4, 3, 3})}, {"fc.weight", floats({3, 8})}, {"fc.bias", floats({3})}, {"flat", whole({1, 8})}};
    m.nodes = {{"Conv", "a", {"image", "conv.weight"}, {"c"}, {{"pads", Ints{1, 1, 1, 1}}}},
               {"Relu", "b", {"c"}, {"r"}},
               {"GlobalAveragePool", "p", {"r"}, {"g"}},
               {"Reshape", "f", {"g", "flat"}, {"v"}},
               {"Gemm", "l", {"v", "fc.weight", "fc.bias"}, {"logits"}, {{"transB", std::int64_t{1}}}}};
    return m;
}

Model imported(const OnnxModel& m, std::int64_t batch = 0) {
    OnnxReading how;
    how.batch = batch;
    return import_onnx("m.onnx", serialize_onnx(m), how);
}

OnnxModel written(const Model& m, const OnnxWriting& how = {}) { return parse_onnx("out.onnx", onnx_files(m.graph, m.weights, "out.onnx", how).model); }

struct Folder {
    fs::path path = fs::temp_directory_path() / ("loopegg-writing-" + std::to_string(::getpid()));
    Folder() { fs::create_directories(path); }
    ~Folder() { fs::remove_all(path); }
};

}  // namespace

TEST_CASE("a batch that was open is open again, and so are the names", "[unit][graph]") {
    Model m = imported(classifier(18));
    CHECK(read_model(make_source("m.json", write_model(m.graph))) == m.graph);
    // A restricted site must not settle the batch either: groups, every second row, channels that come back.
    for (const char* condition : {"", "co/4%2 == ci/2%2", "0 <= oh%2 < 1", "0 <= co%8 < 4", "0 <= ci%4 < 2"}) {
        INFO(condition);
        Model r = m;
        if (*condition) {
            Node& site = r.graph.nodes[0];
            REQUIRE(site.op == "conv2d");
            REQUIRE(add_condition(site.domain.parts.emplace_back(), condition).empty());
            site.domain.restore =
                std::string(condition).starts_with("0 <= ci") || std::string(condition).find("==") != std::string::npos ? Restore::none : Restore::repeat;
            complete(r.graph);
        }
        const OnnxFiles files = onnx_files(r.graph, r.weights, "out.onnx");
        CHECK(files.notes.empty());
        const OnnxModel out = parse_onnx("out.onnx", files.model);
        CHECK(out.inputs[0].name == "image");
        CHECK(out.inputs[0].shape == Shape{-1, 4, 6, 6});
        CHECK(out.inputs[0].symbols[0] == "N");
        CHECK(out.outputs[0].name == "logits");
        CHECK(out.outputs[0].shape == Shape{-1, 3});
        CHECK(out.outputs[0].symbols[0] == "N");
        // Three at once are three, each as it is alone.
        const Model three = imported(out, 3), one = imported(out);
        CHECK(one.graph == r.graph);
        const Tensor x = normal_tensor({3, 4, 6, 6}, 1, "x");
        const Tensor y = interpret(three.graph, three.weights, {{"image", x}}).at("logits");
        for (std::size_t i = 0; i < 3; ++i) {
            const Tensor xi{{1, 4, 6, 6}, {x.values.begin() + static_cast<long>(i) * 144, x.values.begin() + static_cast<long>(i + 1) * 144}};
            const Tensor yi = interpret(one.graph, one.weights, {{"image", xi}}).at("logits");
            for (std::size_t j = 0; j < 3; ++j) CHECK(y.values[i * 3 + j] == Approx(yi.values[j]));
        }
    }
}

TEST_CASE("a batch that a node needs as it is stays a number, and that is said", "[unit][graph]") {
    OnnxModel m;
    m.producer = "somebody", m.opset = 18;
    m.inputs.push_back({"x", {-1, 4}}), m.inputs[0].symbols = {"", ""};
    m.outputs.push_back({"y", {2, 2}});
    m.initializers = {{"shape", whole({2, 2})}};
    m.nodes = {{"Reshape", "r", {"x", "shape"}, {"y"}}};
    const Model read = imported(m);
    const OnnxFiles files = onnx_files(read.graph, read.weights, "out.onnx");
    REQUIRE(files.notes.size() == 1);
    CHECK_THAT(files.notes[0], Catch::Contains("the batch was open ('batch') and is 1 in out.onnx"));
    CHECK(parse_onnx("out.onnx", files.model).inputs[0].shape == Shape{1, 4});
}

TEST_CASE("the opset of the file that came in goes out, where it has our operators", "[unit][graph]") {
    for (const auto& [in, out] : std::vector<std::pair<std::int64_t, std::int64_t>>{{9, 13}, {13, 13}, {16, 16}, {18, 18}, {21, 21}, {24, 24}})
        CHECK(written(imported(classifier(in))).opset == out);
    CHECK(written(imported(classifier(13))).ir_version == 7);
    CHECK(written(imported(classifier(21))).ir_version == 10);
    OnnxModel norm = classifier(13);  // LayerNormalization came with 17
    norm.initializers.push_back({"ln.weight", floats({3})}), norm.initializers.push_back({"ln.bias", floats({3})});
    norm.nodes.back().outputs = {"h"};
    const std::vector<OnnxNode> parts{{"ReduceMean", "m", {"h"}, {"m"}, {{"axes", Ints{-1}}}},
                                      {"Sub", "s", {"h", "m"}, {"s"}},
                                      {"Pow", "q", {"s", "two"}, {"q"}},
                                      {"ReduceMean", "k", {"q"}, {"k"}, {{"axes", Ints{-1}}}},
                                      {"Add", "e", {"k", "eps"}, {"e"}},
                                      {"Sqrt", "d", {"e"}, {"d"}},
                                      {"Div", "n", {"s", "d"}, {"n"}},
                                      {"Mul", "w", {"n", "ln.weight"}, {"w"}},
                                      {"Add", "o", {"w", "ln.bias"}, {"logits"}}};
    norm.nodes.insert(norm.nodes.end(), parts.begin(), parts.end());
    norm.initializers.push_back({"two", {OnnxTensor::Kind::float32, {}, {2}}}), norm.initializers.push_back({"eps", {OnnxTensor::Kind::float32, {}, {1e-5f}}});
    CHECK(written(imported(norm)).opset == 17);
    GraphBuilder own("own");
    Model m{own.finish({own.relu("y", own.input("x", {1, 2}))}), {}};
    CHECK(written(m).opset == 17);
    CHECK_THROWS_WITH(read_model(make_source("m.json", R"({"loopegg": 1, "name": "m", "opset": 3, "inputs": [], "nodes": [], "outputs": []})")),
                      Catch::Contains("from 7 to 1000"));
}

TEST_CASE("a file of an older opset that is read as it stands is written the same when it is read back", "[unit][graph]") {
    OnnxReading as_it_stands;
    as_it_stands.upgrade = false;
    for (const std::int64_t opset : {9, 12, 13, 18}) {
        const Model once = import_onnx("m.onnx", serialize_onnx(classifier(opset)), as_it_stands);
        const std::string out = export_onnx(once.graph, once.weights);
        const Model again = import_onnx("m.onnx", out, as_it_stands);
        CHECK(again.graph.opset == once.graph.opset);
        CHECK(export_onnx(again.graph, again.weights) == out);
    }
}

TEST_CASE("a function that the opset has is written as one node", "[unit][graph]") {
    for (const char* op : {"gelu", "gelu_tanh"})
        for (const std::int64_t opset : {17, 20}) {
            GraphBuilder b("one");
            Model m{b.finish({b.node(op, "y", {b.input("x", {1, 4})})}), {}};
            m.graph.opset = opset;
            const OnnxModel out = written(m);
            CHECK((out.nodes.size() == 1) == (opset == 20));
            CHECK(out.opset == opset);
            const Tensors x{{"x", normal_tensor({1, 4}, 3, "x")}};
            const Tensor wanted = interpret(m.graph, {}, x).at("y");
            const Model again = imported(out);
            const Tensor got = interpret(again.graph, again.weights, x).at("y");
            for (std::size_t i = 0; i < 4; ++i) CHECK(got.values[i] == Approx(wanted.values[i]));
        }
}

TEST_CASE("slices that make up the whole are written as one split", "[unit][graph]") {
    for (const bool all_are_read : {true, false}) {
        OnnxModel m = classifier(18);
        m.initializers.push_back({"parts", whole({3, 5})});
        m.nodes.insert(m.nodes.begin() + 2, {{"Split", "s", {"r", "parts"}, {"s0", "s1"}, {{"axis", std::int64_t{1}}}},
                                             {"Concat", "t", {"s1", all_are_read ? "s0" : "s1"}, {"joined"}, {{"axis", std::int64_t{1}}}}});
        m.nodes[4].inputs[0] = "joined";
        if (!all_are_read) m.initializers[1].second = floats({3, 10}), m.initializers[3].second = whole({1, 10});
        const Model read = imported(m);
        const OnnxModel out = written(read);
        const auto count = [&](const char* op) { return std::count_if(out.nodes.begin(), out.nodes.end(), [&](const OnnxNode& n) { return n.op == op; }); };
        CHECK(count("Split") == all_are_read);
        CHECK(count("Slice") == !all_are_read);
        const Model again = imported(out);
        CHECK(again.graph == read.graph);
        const Tensors x{{"image", normal_tensor({1, 4, 6, 6}, 9, "x")}};
        CHECK(interpret(again.graph, again.weights, x) == interpret(read.graph, read.weights, x));
        OnnxModel bare = out;  // the nodes alone
        bare.metadata.clear(), bare.producer = "somebody";
        const Model others = imported(bare);
        CHECK(interpret(others.graph, others.weights, x) == interpret(read.graph, read.weights, x));
    }
}

TEST_CASE("rows and columns that come back do so by one operator", "[unit][graph]") {
    GraphBuilder b("one");
    Model m{b.finish({b.conv("y", b.input("x", {1, 2, 7, 6}), {.out = 4, .kernel = 3, .padding = 1})}), {}};
    m.weights = initial_weights(m.graph, 5);
    for (const char* condition : {"0 <= oh%7 < 1", "0 <= ow%2 < 1", "both"}) {
        INFO(condition);
        Model r = m;
        Domain& domain = r.graph.nodes[0].domain;
        domain.parts.emplace_back(), domain.restore = Restore::repeat;
        for (const char* one : {"0 <= oh%7 < 1", "0 <= ow%2 < 1"})
            if (std::string(condition) == "both" || std::string(condition) == one) REQUIRE(add_condition(domain.parts[0], one).empty());
        complete(r.graph);
        const OnnxModel out = written(r);
        CHECK(std::count_if(out.nodes.begin(), out.nodes.end(), [](const OnnxNode& n) { return n.op == "Resize"; }) == 1);
        CHECK(std::count_if(out.nodes.begin(), out.nodes.end(), [](const OnnxNode& n) { return n.op == "Gather"; }) == 0);
        // The words about the site left out, the nodes alone say what is computed.
        OnnxModel bare = out;
        bare.metadata.clear(), bare.producer = "somebody";
        const Model read = imported(bare);
        REQUIRE(read.graph.outputs == std::vector<std::string>{"y"});  // though a weight is called y.weight
        const Tensors x{{"x", normal_tensor({1, 2, 7, 6}, 6, "x")}};
        const Tensor wanted = interpret(r.graph, r.weights, x).at("y"), got = interpret(read.graph, read.weights, x).at("y");
        for (std::size_t i = 0; i < wanted.values.size(); ++i) CHECK(got.values[i] == Approx(wanted.values[i]).margin(1e-6));
    }
}

TEST_CASE("large weights are stored next to the file, and are read from there", "[unit][graph]") {
    const Folder folder;
    const Model m = imported(classifier(18));
    OnnxWriting how;
    how.max_inside = 100, how.about = {{"loopegg.plan", "{\"steps\": []}"}};
    const OnnxFiles files = onnx_files(m.graph, m.weights, "big.onnx", how);
    CHECK(files.data.size() == 8 * 4 * 3 * 3 * 4);  // small tensors stay inside
    write_onnx(folder.path / "big.onnx", files);
    const Model back = read_onnx(folder.path / "big.onnx");
    CHECK(back.graph == m.graph);
    CHECK(back.weights == m.weights);
    CHECK(parse_onnx("big.onnx", files.model, folder.path).metadata.at("loopegg.plan") == "{\"steps\": []}");
    CHECK(onnx_files(m.graph, m.weights, "big.onnx").data.empty());
    fs::remove(folder.path / "big.onnx.data");
    CHECK_THROWS_WITH(read_onnx(folder.path / "big.onnx"), Catch::Contains("'big.onnx.data', and there is no such file next to the model"));
}
