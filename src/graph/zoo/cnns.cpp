// Convolutional networks other than ResNets: VGG, DenseNet and MobileNetV2.
#include <fmt/format.h>

#include "graph/builder.hpp"
#include "graph/zoo/zoo.hpp"

namespace loopegg {

// VGG (Simonyan and Zisserman 2015) with batch norms: a network without shortcuts.
// Thirteen convolutions in five stages; one linear layer reads the last pixel, as in the common CIFAR-10 form.
Graph build_vgg16_cifar10() {
    constexpr struct {
        std::int64_t channels;
        int count;
    } stages[] = {{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}};
    GraphBuilder b("vgg16-cifar10");
    std::string x = b.input("input", {1, 3, 32, 32});
    int next = 0;  // torchvision counts every layer of the sequence
    const auto name = [&] { return fmt::format("features.{}", next++); };
    for (const auto& stage : stages) {
        for (int i = 0; i < stage.count; ++i) {
            x = b.conv(name(), x, {.out = stage.channels, .kernel = 3, .padding = 1});
            x = b.norm(name(), x);
            x = b.relu(name(), x);
        }
        x = b.pool("max_pool", name(), x, 2, 2);
    }
    return b.finish({b.linear("classifier", b.node("flatten", "flatten", {x}), 10)});
}

// DenseNet (Huang et al. 2017).
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

// MobileNetV2 (Sandler et al. 2018).
namespace {

std::string conv_norm_relu6(GraphBuilder& b, const std::string& at, const std::string& x, GraphBuilder::Conv c) {
    return b.node("relu6", at + ".2", {b.norm(at + ".1", b.conv(at + ".0", x, c))});
}

// The sizes of one block, which is wider inside than at its ends.
struct Bottleneck {
    std::int64_t in, out, stride, expand;
};

std::string inverted_residual(GraphBuilder& b, const std::string& at, const std::string& x, const Bottleneck& block) {
    const auto& [in, out, stride, expand] = block;
    std::string y = x;
    int next = 0;
    if (expand != 1) y = conv_norm_relu6(b, fmt::format("{}.conv.{}", at, next++), y, {.out = in * expand, .kernel = 1});
    y = conv_norm_relu6(b, fmt::format("{}.conv.{}", at, next++), y, {.out = in * expand, .kernel = 3, .stride = stride, .padding = 1, .groups = in * expand});
    y = b.conv(fmt::format("{}.conv.{}", at, next++), y, {.out = out, .kernel = 1});
    y = b.norm(fmt::format("{}.conv.{}", at, next++), y);
    return stride == 1 && in == out ? b.add(at + ".add", x, y) : y;
}

struct Stage {
    std::int64_t expand, out;
    int count;
    std::int64_t stride;
};

Graph mobilenet_v2(std::string name, Shape input, std::int64_t first_stride, const std::vector<Stage>& stages, std::int64_t classes) {
    GraphBuilder b(std::move(name));
    std::string x = conv_norm_relu6(b, "features.0", b.input("input", std::move(input)), {.out = 32, .kernel = 3, .stride = first_stride, .padding = 1});
    std::int64_t in = 32;
    int block = 1;
    for (const Stage& s : stages)
        for (int i = 0; i < s.count; ++i) {
            x = inverted_residual(b, fmt::format("features.{}", block++), x, {.in = in, .out = s.out, .stride = i == 0 ? s.stride : 1, .expand = s.expand});
            in = s.out;
        }
    x = conv_norm_relu6(b, fmt::format("features.{}", block), x, {.out = 1280, .kernel = 1});
    x = b.node("flatten", "flatten", {b.node("global_avg_pool", "avgpool", {x})});
    return b.finish({b.linear("classifier.1", x, classes)});
}

}  // namespace

Graph build_mobilenet_v2() {
    return mobilenet_v2("mobilenet_v2", {1, 3, 224, 224}, 2,
                        {{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}}, 1000);
}

// The common CIFAR-10 form: the first convolution and the second stage keep all pixels.
Graph build_mobilenet_v2_cifar10() {
    return mobilenet_v2("mobilenet_v2-cifar10", {1, 3, 32, 32}, 1,
                        {{1, 16, 1, 1}, {6, 24, 2, 1}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}}, 10);
}

}  // namespace loopegg
