#include "graph/zoo/zoo.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace loopegg {

const std::vector<ZooEntry>& zoo() {
    static const std::vector<ZooEntry> all{
        {"resnet18", "ResNet-18, ImageNet 224", build_resnet18},
        {"resnet34", "ResNet-34, ImageNet 224", build_resnet34},
        {"densenet161", "DenseNet-161, ImageNet 224", build_densenet161},
        {"densenet169", "DenseNet-169, ImageNet 224", build_densenet169},
        {"densenet201", "DenseNet-201, ImageNet 224", build_densenet201},
        {"mobilenet_v2", "MobileNetV2, ImageNet 224", build_mobilenet_v2},
        {"resnet34-cifar10", "ResNet-34, CIFAR-10 32", build_resnet34_cifar10},
        {"resnext29_2x64d", "ResNeXt-29 2x64d, CIFAR-10 32", build_resnext29_2x64d},
        {"densenet100-cifar10", "DenseNet-BC of 100 layers, growth 24, CIFAR-10 32", build_densenet100_cifar10},
        {"densenet161-cifar10", "DenseNet-161, CIFAR-10 32", build_densenet161_cifar10},
        {"mobilenet_v2-cifar10", "MobileNetV2, CIFAR-10 32", build_mobilenet_v2_cifar10},
        {"vgg16-cifar10", "VGG-16 with batch norm, CIFAR-10 32", build_vgg16_cifar10},
        {"bert-tiny", "BERT-tiny encoder: 2 layers, 128 wide, 128 tokens", build_bert_tiny},
        {"vit-tiny", "ViT-tiny encoder: 12 layers, 192 wide, 16x16 patches of 224", build_vit_tiny},
    };
    return all;
}

Graph zoo_graph(std::string_view name) {
    for (const ZooEntry& entry : zoo())
        if (entry.name == name) return entry.build();
    if (name.starts_with("|")) return build_nasbench201(std::string(name));
    std::vector<std::string_view> names;
    for (const ZooEntry& entry : zoo()) names.push_back(entry.name);
    std::string hint = did_you_mean(name, names);
    throw UsageError(Diagnostic{fmt::format("no network '{}' in the zoo", name), {}, hint.empty() ? "'loopegg zoo' lists them" : hint});
}

}  // namespace loopegg
