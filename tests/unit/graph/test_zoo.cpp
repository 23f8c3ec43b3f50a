// The zoo: sizes of its networks, and their classes of architecture.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <cmath>
#include <set>

#include "base/error.hpp"
#include "base/places.hpp"
#include "graph/architecture.hpp"
#include "graph/builder.hpp"
#include "graph/dot.hpp"
#include "graph/flops.hpp"
#include "graph/load.hpp"
#include "graph/model_json.hpp"
#include "graph/onnx/onnx.hpp"
#include "graph/operators.hpp"
#include "graph/zoo/zoo.hpp"
#include "tests/made_onnx.hpp"

using namespace loopegg;

namespace {

const char* cell = "|nor_conv_3x3~0|+|nor_conv_1x1~0|avg_pool_3x3~1|+|skip_connect~0|none~1|nor_conv_3x3~2|";

long hundredths(std::int64_t value, double unit) { return std::lround(static_cast<double>(value) / unit * 100); }

}  // namespace

TEST_CASE("zoo networks have their published parameters and MACs", "[unit][graph]") {
    struct Row {
        const char* name;
        long parameters, macs;
    };  // hundredths of a million and of a billion
    Row rows[] = {{"resnet18", 1169, 181},           {"resnet34", 2180, 366},          {"densenet161", 2868, 773},
                  {"densenet169", 1415, 336},        {"densenet201", 2001, 429},       {"mobilenet_v2", 350, 30},
                  {"resnet34-cifar10", 2128, 116},   {"resnext29_2x64d", 913, 141},    {"densenet161-cifar10", 2648, 247},
                  {"densenet100-cifar10", 302, 115}, {"mobilenet_v2-cifar10", 224, 9}, {"vgg16-cifar10", 1472, 31}};
    for (const Row& row : rows) {
        INFO(row.name);
        Graph g = zoo_graph(row.name);
        CHECK(hundredths(parameters(g), 1e6) == row.parameters);
        CHECK(hundredths(macs(g), 1e9) == row.macs);
    }
    CHECK(parameters(zoo_graph("resnet18")) == 11689512);  // torchvision's own counts
    CHECK(parameters(zoo_graph("resnet34")) == 21797672);
    CHECK(parameters(zoo_graph("densenet161")) == 28681000);
    CHECK(parameters(zoo_graph("densenet169")) == 14149480);
    CHECK(parameters(zoo_graph("densenet201")) == 20013928);
    CHECK(parameters(zoo_graph("mobilenet_v2")) == 3504872);
}

TEST_CASE("every zoo network survives model.json and another batch size", "[unit][graph]") {
    std::vector<std::string> names{cell};
    for (const ZooEntry& entry : zoo()) names.emplace_back(entry.name);
    for (const std::string& name : names) {
        INFO(name);
        Graph g = zoo_graph(name);
        CHECK(read_model(make_source("m.json", write_model(g))) == g);
        CHECK(with_batch(g, 3).shape_of(g.outputs[0])[0] == 3);
        CHECK(macs(with_batch(g, 3)) == 3 * macs(g));
        CHECK(to_dot(g).find("digraph") == 0);
    }
}

TEST_CASE("NAS-Bench-201 cells", "[unit][graph]") {
    Graph g = zoo_graph(cell);
    CHECK(g.find("cells.0.edges.1<-0.op.1") != nullptr);
    CHECK(g.find("cells.16.edges.3<-2.op.1") != nullptr);
    CHECK(g.shape_of("lastact.1") == Shape{1, 64, 8, 8});
    // The benchmark's own count for all edges 3x3: 1.531546 M (affine, with the classifier).
    std::string dense = "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|nor_conv_3x3~0|nor_conv_3x3~1|nor_conv_3x3~2|";
    CHECK(parameters(zoo_graph(dense)) == 1531546);
    CHECK(zoo_graph("|none~0|+|none~0|none~1|+|none~0|none~1|none~2|").find("cells.0.zero") != nullptr);
}

TEST_CASE("a wrong cell or name is pointed at", "[errors][graph]") {
    auto complaint = [](const std::string& name) {
        try {
            zoo_graph(name);
        } catch (const UserError& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    CHECK(complaint("resnet43").find("did you mean 'resnet34'?") != std::string::npos);
    CHECK(complaint("|nor_conv_3x3~0|+|nor_conv_5x5~0|").find("1:19: error: unknown operation 'nor_conv_5x5'") != std::string::npos);
    CHECK(complaint("|none~1|").find("expected 0") != std::string::npos);
    CHECK(complaint(std::string(cell) + "x").find("something follows") != std::string::npos);
}

TEST_CASE("the memory of activations is what is alive at once", "[unit][graph]") {
    // In the first stage of 64 channels of 32x32: a block's input, and the output and the input of the node that runs.
    CHECK(peak_activation_bytes(zoo_graph("resnet34-cifar10")) == 3 * 64 * 32 * 32 * 4);
}

TEST_CASE("every network of the zoo is classified correctly", "[unit][graph]") {
    struct Case {
        const char* model;
        ArchitectureClass kind;
    };
    using enum ArchitectureClass;
    const Case cases[] = {{"zoo:resnet18", residual},        {"zoo:resnet34", residual},     {"zoo:resnet34-cifar10", residual},
                          {"zoo:resnext29_2x64d", residual}, {"zoo:densenet161", dense},     {"zoo:densenet161-cifar10", dense},
                          {"zoo:mobilenet_v2", mobile},      {"zoo:bert-tiny", transformer}, {"zoo:vit-tiny", transformer}};
    for (const Case& c : cases) {
        Architecture found = classify_architecture(load_graph(c.model));
        INFO(c.model << ": " << found.why);
        CHECK(to_string(found.kind) == std::string(to_string(c.kind)));
        CHECK_FALSE(found.why.empty());
    }
}

TEST_CASE("chains are plain and several output scales mean detection", "[unit][graph]") {
    GraphBuilder chain("chain");
    std::string x = chain.input("x", {1, 3, 8, 8});
    x = chain.conv("a", x, {.out = 8, .kernel = 3, .padding = 1});
    Graph plain = chain.finish({chain.conv("b", x, {.out = 8, .kernel = 3, .padding = 1})});
    CHECK(classify_architecture(plain).kind == ArchitectureClass::plain);

    GraphBuilder heads("heads");
    x = heads.conv("a", heads.input("x", {1, 3, 16, 16}), {.out = 8, .kernel = 3, .padding = 1});
    std::string fine = heads.conv("head1", x, {.out = 12, .kernel = 1});
    std::string coarse = heads.conv("head2", heads.conv("down", x, {.out = 8, .kernel = 3, .stride = 2, .padding = 1}), {.out = 12, .kernel = 1});
    Architecture found = classify_architecture(heads.finish({fine, coarse}));
    CHECK(found.kind == ArchitectureClass::detection);
    CHECK(found.why == "its outputs are feature maps at 2 scales");
}

TEST_CASE("a class is named and found by its name", "[unit][graph]") {
    for (const std::string& name : architecture_class_names()) CHECK(to_string(architecture_class(name).value()) == name);
    CHECK_FALSE(architecture_class("resnet").has_value());
}

TEST_CASE("a network is recognised by its layers, whatever it is called and however large its images are", "[unit][graph]") {
    const Graph network = load_graph("zoo:mobilenet_v2-cifar10");
    const Hash128 hash = architecture_hash(network);
    Graph renamed = network;
    renamed.name = "another";
    std::map<std::string, std::string> names{{"input", "image"}};
    for (GraphInput& in : renamed.inputs) in.name = "image";
    for (Node& node : renamed.nodes) {
        names[node.name] = fmt::format("node{}", names.size());
        node.name = names[node.name];
        for (std::string& in : node.inputs) in = names.at(in);
    }
    for (std::string& out : renamed.outputs) out = names.at(out);
    complete(renamed);
    CHECK(architecture_hash(renamed) == hash);
    CHECK(architecture_hash(with_batch(network, 8)) == hash);
    Graph larger = network;
    larger.inputs[0].shape = {1, 3, 64, 64};
    complete(larger);
    CHECK(architecture_hash(larger) == hash);
    CHECK(architecture_hash(load_graph(shipped("examples/resnet34-cifar10.json").string())) == architecture_hash(load_graph("zoo:resnet34-cifar10")));

    std::set<std::string> all;
    for (const ZooEntry& entry : zoo()) all.insert(architecture_hash(entry.build()).hex());
    CHECK(all.size() == zoo().size());
    Graph wider = network;
    wider.find("features.18.0")->attrs["out_channels"] = std::int64_t{1281};
    complete(wider);
    CHECK(architecture_hash(wider) != hash);
}

TEST_CASE("a network that two exporters wrote is one network", "[unit][graph]") {
    const std::map<std::string, std::string> files = test::exported_onnx();
    for (const char* model : {"attention", "basic_block", "dense", "inverted", "patches", "sdpa"}) {
        INFO(model);
        const auto exported = [&](const char* exporter) {
            return architecture_hash(import_onnx("m.onnx", files.at(fmt::format("{}_{}", model, exporter))).graph);
        };
        CHECK(exported("dynamo_20") == exported("script_14"));
    }
    const Model bert = load_model("zoo:bert-tiny");
    CHECK(architecture_hash(import_onnx("m.onnx", export_onnx(bert.graph, bert.weights)).graph) == architecture_hash(bert.graph));
}
