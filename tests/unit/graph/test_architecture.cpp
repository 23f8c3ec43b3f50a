#include <set>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "base/places.hpp"
#include "graph/architecture.hpp"
#include "graph/builder.hpp"
#include "graph/load.hpp"
#include "graph/onnx/onnx.hpp"
#include "graph/zoo/zoo.hpp"

using namespace loopegg;

TEST_CASE("every network of the zoo is told for what it is", "[unit][graph]") {
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
    for (const char* model : {"attention", "basic_block", "dense", "inverted", "patches", "sdpa"}) {
        INFO(model);
        const auto exported = [&](const char* exporter) {
            return architecture_hash(load_graph(fmt::format("{}/tests/data/onnx/{}_{}.onnx", LOOPEGG_SOURCE, model, exporter)));
        };
        CHECK(exported("dynamo_20") == exported("script_14"));
    }
    const Model bert = load_model("zoo:bert-tiny");
    CHECK(architecture_hash(import_onnx("m.onnx", export_onnx(bert.graph, bert.weights)).graph) == architecture_hash(bert.graph));
}
