// VGG (Simonyan and Zisserman 2015) with batch norms: a network without shortcuts.
#include <fmt/format.h>

#include "graph/builder.hpp"
#include "graph/zoo/zoo.hpp"

namespace loopegg {

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

}  // namespace loopegg
