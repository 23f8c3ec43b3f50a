// ResNet (He et al. 2016) and ResNeXt (Xie et al. 2017).
#include <fmt/format.h>

#include "graph/builder.hpp"
#include "graph/zoo/zoo.hpp"

namespace loopegg {
namespace {

std::string classifier(GraphBuilder& b, std::string x, std::int64_t classes) {
    x = b.node("global_avg_pool", "avgpool", {x});
    x = b.node("flatten", "flatten", {x});
    return b.linear("fc", x, classes);
}

// The shortcut of a block: the input itself, or a strided 1x1 convolution when the shape changes.
std::string shortcut(GraphBuilder& b, const std::string& at, const std::string& x, std::int64_t in, std::int64_t out, std::int64_t stride) {
    if (stride == 1 && in == out) return x;
    return b.norm(at + ".downsample.1", b.conv(at + ".downsample.0", x, {.out = out, .kernel = 1, .stride = stride}));
}

std::string basic_block(GraphBuilder& b, const std::string& at, const std::string& x, std::int64_t in, std::int64_t out, std::int64_t stride) {
    std::string y = b.conv(at + ".conv1", x, {.out = out, .kernel = 3, .stride = stride, .padding = 1});
    y = b.relu(at + ".relu", b.norm(at + ".bn1", y));
    y = b.norm(at + ".bn2", b.conv(at + ".conv2", y, {.out = out, .kernel = 3, .padding = 1}));
    return b.relu(at + ".relu_1", b.add(at + ".add", y, shortcut(b, at, x, in, out, stride)));
}

enum class Stem { imagenet, cifar };

Graph resnet(std::string name, Stem stem, std::vector<int> blocks) {
    GraphBuilder b(std::move(name));
    bool imagenet = stem == Stem::imagenet;
    std::string x = b.input("input", imagenet ? Shape{1, 3, 224, 224} : Shape{1, 3, 32, 32});
    x = imagenet ? b.conv("conv1", x, {.out = 64, .kernel = 7, .stride = 2, .padding = 3}) : b.conv("conv1", x, {.out = 64, .kernel = 3, .padding = 1});
    x = b.relu("relu", b.norm("bn1", x));
    if (imagenet) x = b.pool("max_pool", "maxpool", x, 3, 2, 1);
    std::int64_t in = 64;
    for (std::size_t stage = 0; stage < blocks.size(); ++stage)
        for (int i = 0; i < blocks[stage]; ++i) {
            std::int64_t out = 64 << stage;
            x = basic_block(b, fmt::format("layer{}.{}", stage + 1, i), x, in, out, stage > 0 && i == 0 ? 2 : 1);
            in = out;
        }
    return b.finish({classifier(b, x, imagenet ? 1000 : 10)});
}

// The sizes of one block of ResNeXt: the convolution in its middle has `width` channels in groups.
struct GroupedBlock {
    std::int64_t in, width, groups, stride;
};

std::string resnext_block(GraphBuilder& b, const std::string& at, const std::string& x, const GroupedBlock& block) {
    const auto& [in, width, groups, stride] = block;
    std::string y = b.relu(at + ".relu", b.norm(at + ".bn1", b.conv(at + ".conv1", x, {.out = width, .kernel = 1})));
    y = b.conv(at + ".conv2", y, {.out = width, .kernel = 3, .stride = stride, .padding = 1, .groups = groups});
    y = b.relu(at + ".relu_1", b.norm(at + ".bn2", y));
    y = b.norm(at + ".bn3", b.conv(at + ".conv3", y, {.out = 2 * width, .kernel = 1}));
    return b.relu(at + ".relu_2", b.add(at + ".add", y, shortcut(b, at, x, in, 2 * width, stride)));
}

}  // namespace

Graph build_resnet18() { return resnet("resnet18", Stem::imagenet, {2, 2, 2, 2}); }
Graph build_resnet34() { return resnet("resnet34", Stem::imagenet, {3, 4, 6, 3}); }
Graph build_resnet34_cifar10() { return resnet("resnet34-cifar10", Stem::cifar, {3, 4, 6, 3}); }

// Three stages of three blocks; the stem is the 1x1 convolution of the common CIFAR-10 code, which the published count includes.
Graph build_resnext29_2x64d() {
    constexpr std::int64_t groups = 2;
    GraphBuilder b("resnext29_2x64d");
    std::string x = b.relu("relu", b.norm("bn1", b.conv("conv1", b.input("input", {1, 3, 32, 32}), {.out = 64, .kernel = 1})));
    std::int64_t in = 64;
    for (int stage = 0; stage < 3; ++stage)
        for (int i = 0; i < 3; ++i) {
            std::int64_t width = groups * 64 << stage;
            x = resnext_block(b, fmt::format("layer{}.{}", stage + 1, i), x,
                              {.in = in, .width = width, .groups = groups, .stride = stage > 0 && i == 0 ? 2 : 1});
            in = 2 * width;
        }
    return b.finish({classifier(b, x, 10)});
}

}  // namespace loopegg
