// MobileNetV2 (Sandler et al. 2018).
#include <fmt/format.h>

#include "graph/builder.hpp"
#include "graph/zoo/zoo.hpp"

namespace loopegg {
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
