// DenseNet (Huang et al. 2017).
#include <fmt/format.h>

#include "graph/builder.hpp"
#include "graph/zoo/zoo.hpp"

namespace loopegg {
namespace {

struct DenseNet {
    std::int64_t growth, first;
    std::vector<int> blocks;
    bool imagenet = true;
};

std::string stem(GraphBuilder& b, const DenseNet& d) {
    if (!d.imagenet) return b.conv("features.conv0", b.input("input", {1, 3, 32, 32}), {.out = d.first, .kernel = 3, .padding = 1});
    std::string x = b.conv("features.conv0", b.input("input", {1, 3, 224, 224}), {.out = d.first, .kernel = 7, .stride = 2, .padding = 3});
    return b.pool("max_pool", "features.pool0", b.relu("features.relu0", b.norm("features.norm0", x)), 3, 2, 1);
}

// A layer sees everything before it in the block and adds `growth` channels.
std::string dense_layer(GraphBuilder& b, const std::string& at, const std::string& x, std::int64_t growth) {
    std::string y = b.relu(at + ".relu1", b.norm(at + ".norm1", x));
    y = b.conv(at + ".conv1", y, {.out = 4 * growth, .kernel = 1});
    y = b.relu(at + ".relu2", b.norm(at + ".norm2", y));
    y = b.conv(at + ".conv2", y, {.out = growth, .kernel = 3, .padding = 1});
    return b.node("concat", at + ".cat", {x, y});
}

Graph densenet(std::string name, const DenseNet& d) {
    GraphBuilder b(std::move(name));
    std::string x = stem(b, d);
    std::int64_t channels = d.first;
    for (std::size_t block = 1; block <= d.blocks.size(); ++block) {
        for (int layer = 1; layer <= d.blocks[block - 1]; ++layer, channels += d.growth)
            x = dense_layer(b, fmt::format("features.denseblock{}.denselayer{}", block, layer), x, d.growth);
        if (block == d.blocks.size()) break;
        std::string at = fmt::format("features.transition{}", block);
        channels /= 2;
        x = b.conv(at + ".conv", b.relu(at + ".relu", b.norm(at + ".norm", x)), {.out = channels, .kernel = 1});
        x = b.pool("avg_pool", at + ".pool", x, 2, 2);
    }
    x = b.relu("relu", b.norm("features.norm5", x));
    x = b.node("flatten", "flatten", {b.node("global_avg_pool", "avgpool", {x})});
    return b.finish({b.linear("classifier", x, d.imagenet ? 1000 : 10)});
}

}  // namespace

Graph build_densenet161() { return densenet("densenet161", {48, 96, {6, 12, 36, 24}}); }
Graph build_densenet169() { return densenet("densenet169", {32, 64, {6, 12, 32, 32}}); }
Graph build_densenet201() { return densenet("densenet201", {32, 64, {6, 12, 48, 32}}); }
// DenseNet-BC with 100 layers in three blocks, and a growth of 24.
Graph build_densenet100_cifar10() { return densenet("densenet100-cifar10", {24, 48, {16, 16, 16}, false}); }
Graph build_densenet161_cifar10() { return densenet("densenet161-cifar10", {48, 96, {6, 12, 36, 24}, false}); }

}  // namespace loopegg
