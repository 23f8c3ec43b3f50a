#include <catch2/catch.hpp>

#include <cmath>

#include "base/error.hpp"
#include "graph/dot.hpp"
#include "graph/flops.hpp"
#include "graph/model_json.hpp"
#include "graph/operators.hpp"
#include "graph/zoo/zoo.hpp"

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
