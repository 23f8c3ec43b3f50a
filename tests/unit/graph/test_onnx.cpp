#include <catch2/catch.hpp>

#include <unistd.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/error.hpp"
#include "base/files.hpp"
#include "graph/builder.hpp"
#include "graph/floats.hpp"
#include "graph/flops.hpp"
#include "graph/int8_scales_name.hpp"
#include "graph/interpreter.hpp"
#include "graph/npy.hpp"
#include "graph/onnx/onnx.hpp"
#include "graph/onnx/onnx_model.hpp"
#include "graph/safetensors.hpp"
#include "graph/weights.hpp"
#include "graph/zoo/zoo.hpp"
#include "tests/made_onnx.hpp"

using namespace loopegg;
namespace fs = std::filesystem;

namespace {

const std::string cell = "|nor_conv_3x3~0|+|nor_conv_1x1~0|avg_pool_3x3~1|+|skip_connect~0|none~1|nor_conv_3x3~2|";

std::vector<std::string> zoo_names() {
    std::vector<std::string> names{cell};
    for (const ZooEntry& entry : zoo()) names.emplace_back(entry.name);
    return names;
}

// The largest difference, relative to the largest value.
double difference(const Tensor& a, const Tensor& b) {
    if (a.shape != b.shape) return INFINITY;
    double scale = 1e-6, worst = 0;
    for (float v : b.values) scale = std::max(scale, std::abs(double{v}));
    for (std::size_t i = 0; i < a.values.size(); ++i)
        worst = std::max(worst, std::isfinite(a.values[i]) ? std::abs(double{a.values[i]} - b.values[i]) : INFINITY);
    return worst / scale;
}

struct Folder {
    fs::path path = fs::temp_directory_path() / ("loopegg-onnx-" + std::to_string(::getpid()));
    Folder() { fs::create_directories(path); }
    ~Folder() { fs::remove_all(path); }
};

std::string peer_python() {
    if (const char* given = std::getenv("LOOPEGG_PEERS")) return std::string(given) + "/bin/python3";
    return std::string(LOOPEGG_SOURCE) + "/.deps/peers/bin/python3";
}

bool have_runtime() {
    static const bool have = fs::exists(peer_python()) && std::system((peer_python() + " -c 'import onnxruntime, numpy' 2>/dev/null").c_str()) == 0;
    return have;
}

// What ONNX Runtime computes.
Tensor runtime_output(const fs::path& folder, const OnnxFiles& files, const Tensor& x) {
    write_onnx(folder / "m.onnx", files);
    write_file(folder / "x.npy", write_npy(x));
    std::string command = peer_python() + " " + LOOPEGG_SOURCE + "/tests/data/onnx/run.py " + (folder / "m.onnx").string() + " " + (folder / "x.npy").string() +
                          " " + (folder / "y.npy").string();
    REQUIRE(std::system(command.c_str()) == 0);
    return read_npy(folder / "y.npy");
}

// A network as a PyTorch exporter wrote it, with an input and PyTorch's output.
struct Exported {
    std::string name;
    Model model;
    Tensor x, y;
};

std::vector<Exported> exported_by_pytorch(const fs::path& folder) {
    const fs::path file = folder / "exported.safetensors";
    const Weights runs = read_safetensors(file);
    std::vector<Exported> all;
    for (const auto& [name, bytes] : test::exported_onnx(file)) all.push_back({name, import_onnx(name, bytes), runs.at(name + ".x"), runs.at(name + ".y")});
    return all;
}

// A graph of its operators at a small size, for what costs too much at the real one.
Graph shrunk(const std::string& name) {
    Graph g = zoo_graph(name);
    if (g.inputs[0].shape.size() == 4 && g.inputs[0].shape[2] == 224 && name != "vit-tiny") {
        g.inputs[0].shape[2] = g.inputs[0].shape[3] = 64;
        complete(g);
    }
    return g;
}

Graph every_operator() {
    GraphBuilder b("every");
    using Ints = std::vector<std::int64_t>;
    std::string x = b.conv("conv", b.input("x", {2, 4, 8, 8}), {.out = 8, .kernel = 3, .stride = 2, .padding = 1, .groups = 2, .bias = true});
    x = b.node("silu", "silu", {b.norm("bn", x)});
    x = b.node("relu6", "relu6", {b.pool("max_pool", "mp", x, 3, 1, 1)});
    std::string y = b.node("avg_pool", "ap", {x}, {{"kernel", Ints{3, 3}}, {"stride", Ints{1, 1}}, {"padding", Ints{1, 1}}, {"count_padding", false}});
    x = b.node("concat", "cat", {x, y, b.node("avg_pool", "ap2", {x}, {{"kernel", Ints{3, 3}}, {"stride", Ints{1, 1}}, {"padding", Ints{1, 1}}})});
    x = b.node("mul", "mul", {x, b.node("parameter", "gate", {}, {{"shape", Ints{24, 1, 1}}})});
    x = b.node("reshape", "tokens", {x}, {{"shape", Ints{0, 24, -1}}});
    x = b.node("transpose", "order", {x}, {{"order", Ints{0, 2, 1}}});
    x = b.node("layer_norm", "ln", {b.node("gelu", "gelu", {b.linear("fc", x, 12)})});
    std::string s = b.node(
        "softmax", "sm",
        {b.node("scale", "scale", {b.node("matmul", "mm", {x, b.node("transpose", "t", {x}, {{"order", Ints{0, 2, 1}}})})}, {{"value", 1 / std::sqrt(12.0)}})},
        {{"axis", std::int64_t{1}}});
    x = b.node("linear", "fc2", {b.node("matmul", "mm2", {s, x})}, {{"out_features", std::int64_t{5}}, {"bias", false}});
    x = b.relu("relu", b.node("flatten", "flat", {x}));
    return b.finish({b.linear("head", x, 3)});
}

Graph restricted(std::vector<std::vector<std::string>> parts, Restore restore, std::int64_t groups = 1) {
    GraphBuilder b("restricted");
    Graph g = b.finish(
        {b.relu("after", b.conv("site", b.input("x", {2, 8, 7, 7}), {.out = 8, .kernel = 3, .stride = 1, .padding = 1, .groups = groups, .bias = true}))});
    for (const auto& conditions : parts) {
        DomainPart part;
        for (const std::string& c : conditions) REQUIRE(add_condition(part, c).empty());
        g.nodes[0].domain.parts.push_back(part);
    }
    g.nodes[0].domain.restore = restore;
    complete(g);
    return g;
}

std::vector<Graph> restricted_graphs() {
    std::vector<Graph> all{
        restricted({{"co/4%2 == ci/4%2"}}, Restore::none),
        restricted({{"co%4 == ci%4"}}, Restore::none),                      // interleaved groups
        restricted({{"0 <= oh%2 < 1", "0 <= ow%2 < 1"}}, Restore::repeat),  // every second row and column
        restricted({{"0 <= co%8 < 4"}}, Restore::repeat),
        restricted({{"2 <= co%8 < 5"}}, Restore::zero),
        restricted({{"0 <= ci%8 < 4"}}, Restore::none),
        restricted({{"1 <= kh%3 < 3", "kw%3 == kh%3"}}, Restore::none),
        restricted({{"0 <= co/4%2 < 1", "co/2%2 == ci/4%2"}, {"1 <= co/4%2 < 2", "co%4 == ci/2%4"}}, Restore::none),  // S3
        restricted({{"oh/4%2 == ci/4%2"}}, Restore::none),                                                            // S1
        restricted({{"0 <= co%4 < 2", "0 <= g%2 < 1"}, {"1 <= g%2 < 2", "co/2%2 == ci/2%2"}}, Restore::repeat, 2),
        restricted({{"0 <= kh%3 < 1", "0 <= oh%7 < 1"}, {"1 <= oh%7 < 7"}}, Restore::none),  // a row that reads padding alone
    };
    GraphBuilder b("lines");
    std::string x = b.linear("site", b.input("x", {2, 3, 8}), 6);
    Graph lines = b.finish({b.node("matmul", "mm", {x, b.node("transpose", "t", {x}, {{"order", std::vector<std::int64_t>{0, 2, 1}}})})});
    lines.nodes[0].domain = {{DomainPart{{{{"co", 1, 6}, 0, 4}}, {{{"co", 1, 2}, {"ci", 4, 2}}}}}, Restore::repeat};
    lines.find("mm")->domain = {{DomainPart{{{{"i", 1, 3}, 0, 2}}, {}}}, Restore::zero};
    complete(lines);
    all.push_back(lines);
    return all;
}

Weights lively(const Graph& g, std::uint64_t seed) {
    Weights w = initial_weights(g, seed);
    for (auto& [name, t] : w)
        if (name.ends_with(".bias") || name.ends_with(".running_mean")) t = normal_tensor(t.shape, seed, name);
    return w;
}

}  // namespace

TEST_CASE("every zoo network goes to ONNX and back unchanged", "[unit][graph]") {
    for (const std::string& name : zoo_names()) {
        INFO(name);
        Graph g = zoo_graph(name);
        if (!std::getenv("LOOPEGG_DEEP") && parameters(g) > 12'000'000) continue;  // large ones say nothing new, and take their time
        Weights w = initial_weights(g, 5);
        Model back = import_onnx("m.onnx", export_onnx(g, w));
        CHECK(back.graph == g);
        CHECK(back.weights == w);
    }
}

TEST_CASE("every operator and every restriction goes to ONNX and back unchanged", "[unit][graph]") {
    std::vector<Graph> all = restricted_graphs();
    all.push_back(every_operator());
    for (const Graph& g : all) {
        INFO(g.name << " " << to_string(g.nodes[0].domain));
        Weights w = lively(g, 5);
        Model back = import_onnx("m.onnx", export_onnx(g, w));
        CHECK(back.graph == g);
        CHECK(back.weights == w);
    }
}

TEST_CASE("a changed expansion of a restricted node is refused", "[errors][graph]") {
    Graph g = restricted({{"co%4 == ci%4"}}, Restore::none);
    OnnxModel model = parse_onnx("m", export_onnx(g, initial_weights(g)));
    for (OnnxNode& node : model.nodes)
        if (node.op == "Conv") node.attrs["group"] = std::int64_t{2};
    CHECK_THROWS_WITH(import_onnx("m.onnx", serialize_onnx(model)), Catch::Contains("the nodes that represent 'site' are not what its description says"));
}

TEST_CASE("wrong names and numbers and tensors in ONNX are refused", "[errors][graph]") {
    const Graph every = every_operator();
    const OnnxModel good = parse_onnx("m", export_onnx(every, initial_weights(every)));
    auto with = [&](auto&& change) {
        OnnxModel model = good;
        model.producer = "somebody", model.metadata.clear();  // as others write it
        change(model);
        return serialize_onnx(model);
    };
    auto first = [](OnnxModel& m, const std::string& op) -> OnnxNode& {
        for (OnnxNode& n : m.nodes)
            if (n.op == op) return n;
        FAIL("no node of " << op);
        return m.nodes[0];
    };
    CHECK_NOTHROW(import_onnx("m.onnx", with([](OnnxModel&) {})));
    CHECK_THROWS_WITH(import_onnx("m.onnx", with([&](OnnxModel& m) {
                                      for (OnnxNode& n : m.nodes)
                                          for (std::string& i : n.inputs)
                                              if (i == m.inputs[0].name) i = "\xff";
                                      m.inputs[0].name = "\xff";
                                  })),
                      Catch::Contains("UTF-8"));
    for (float bad : {NAN, INFINITY})
        CHECK_THROWS_WITH(import_onnx("m.onnx", with([&](OnnxModel& m) { first(m, "LayerNormalization").attrs["epsilon"] = bad; })),
                          Catch::Contains("must be a finite number"));
    CHECK_THROWS_WITH(import_onnx("m.onnx", with([&](OnnxModel& m) {
                                      for (auto& [name, tensor] : m.initializers)
                                          if (name == first(m, "Conv").inputs[1]) tensor.kind = OnnxTensor::Kind::other, tensor.floats.clear();
                                  })),
                      Catch::Contains("m.onnx"));
    for (std::int64_t axis : {9, -9})
        CHECK_THROWS_WITH(import_onnx("m.onnx", with([&](OnnxModel& m) { first(m, "Flatten").attrs["axis"] = axis; })),
                          Catch::Contains("axis is out of range"));
}

TEST_CASE("ONNX Runtime computes what the interpreter computes", "[flow][graph]") {
    if (!have_runtime()) {
        std::puts("SKIPPED: ONNX Runtime computes what the interpreter computes: no onnxruntime in .deps/peers (setup/prepare test-extras installs it)");
        return;
    }
    Folder folder;
    std::vector<Graph> all = restricted_graphs();
    all.push_back(every_operator());
    for (const std::string& name : zoo_names()) all.push_back(shrunk(name));
    OnnxWriting how;
    for (const Graph& g : all) {
        INFO(g.name << " " << to_string(g.nodes[0].domain));
        Weights w = lively(g, 6);
        how.max_inside = how.max_inside == 0 ? 1u << 30 : 0;  // every second one has its weights next to it
        Tensor x = normal_tensor(g.inputs[0].shape, 7, "x");
        Tensor ours = interpret(g, w, {{g.inputs[0].name, x}}).at(g.outputs[0]);
        CHECK(difference(runtime_output(folder.path, onnx_files(g, w, "m.onnx", how), x), ours) < 1e-4);
    }
}

TEST_CASE("ONNX Runtime computes roundings and recurrent layers as they are exported", "[flow][graph]") {
    if (!have_runtime()) {
        std::puts("SKIPPED: ONNX Runtime computes roundings and recurrent layers as they are exported: no onnxruntime in .deps/peers");
        return;
    }
    Folder folder;
    for (const Exported& e : exported_by_pytorch(fs::path(LOOPEGG_SOURCE) / "tests/data/onnx")) {
        const bool quantized = e.name.ends_with("quantized");
        if (!quantized && !e.name.starts_with("recurrent")) continue;
        INFO(e.name);
        CHECK(difference(runtime_output(folder.path, onnx_files(e.model.graph, e.model.weights, "m.onnx"), e.x), e.y) < (quantized ? 2e-2 : 1e-4));
    }
    // Precision choices of sites, against what they say about the numbers.
    GraphBuilder b("sites");
    const Graph g =
        b.finish({b.linear("fc", b.relu("relu", b.conv("conv", b.input("x", {1, 4, 6, 6}), {.out = 8, .kernel = 3, .stride = 1, .padding = 1})), 5)});
    Weights w = lively(g, 6);
    const Tensor x = normal_tensor(g.inputs[0].shape, 7, "x");
    w[int8_scales_name("conv")] = {{10}, {0.02f, 128, 0.01f, 0.01f, 0.02f, 0.01f, 0.01f, 0.01f, 0.03f, 0.01f}};
    OnnxWriting how;
    how.rounded = {{"conv", "int8"}, {"fc", "bf16"}};
    const OnnxFiles files = onnx_files(g, w, "m.onnx", how);
    Weights rounded = w;
    Tensor held = x;
    for (float& v : held.values) v = (std::clamp(std::nearbyint(v / 0.02f) + 128, 0.0f, 255.0f) - 128) * 0.02f;
    const std::size_t each = rounded.at("conv.weight").values.size() / 8;
    for (std::size_t i = 0; i < 8 * each; ++i) {
        const float step = w.at(int8_scales_name("conv")).values[2 + i / each];
        float& v = rounded.at("conv.weight").values[i];
        v = std::clamp(std::nearbyint(v / step), -127.0f, 127.0f) * step;
    }
    Tensors values = interpret_all(g, rounded, {{"x", held}});
    for (float& v : values.at("relu").values) v = from_bfloat16(to_bfloat16(v));
    for (float& v : rounded.at("fc.weight").values) v = from_bfloat16(to_bfloat16(v));
    CHECK(difference(runtime_output(folder.path, files, x), interpret_node(*g.find("fc"), rounded, {&values.at("relu")})) < 1e-3);
}

double error_of(const Exported& e) {
    return difference(interpret(e.model.graph, e.model.weights, {{e.model.graph.inputs[0].name, e.x}}).at(e.model.graph.outputs[0]), e.y);
}

TEST_CASE("torchvision's networks as PyTorch exports them are the zoo's", "[flow][graph]") {
    const char* folder = std::getenv("LOOPEGG_TORCHVISION");
    if (!folder) {
        std::puts(
            "SKIPPED: torchvision's networks as PyTorch exports them are the zoo's: LOOPEGG_TORCHVISION names no folder (tests/data/onnx/make.py --zoo DIR "
            "writes it)");
        return;
    }
    for (const Exported& e : exported_by_pytorch(folder)) {
        INFO(e.name);
        CHECK(macs(e.model.graph) == macs(shrunk(e.name.substr(0, e.name.rfind('_')))));
        CHECK(error_of(e) < 1e-4);
    }
}

TEST_CASE("files of PyTorch's exporters are imported and compute what PyTorch computed", "[unit][graph]") {
    const std::vector<Exported> all = exported_by_pytorch(fs::path(LOOPEGG_SOURCE) / "tests/data/onnx");
    CHECK(all.size() >= 8);
    for (const Exported& e : all) {
        INFO(e.name);
        CHECK(error_of(e) < 1e-4);
        // Another batch works where the exporter fixed the first one, unless the file takes a row of a state, whose first dimension is no batch.
        if (e.name.starts_with("recurrent")) continue;
        CHECK(with_batch(e.model.graph, 3).shape_of(e.model.graph.outputs[0])[0] == 3);
    }
}
