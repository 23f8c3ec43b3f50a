#include <catch2/catch.hpp>

#include "graph/architecture.hpp"
#include "graph/builder.hpp"
#include "graph/load.hpp"

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
