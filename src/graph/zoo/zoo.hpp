// The networks that users compare on, built from their definitions with torchvision's node names.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.hpp"

namespace loopegg {

struct ZooEntry {
    std::string_view name, summary;
    Graph (*build)();
};

const std::vector<ZooEntry>& zoo();

// The graph of a zoo name or of a NAS-Bench-201 cell ("|nor_conv_3x3~0|+|...|"). Throws UserError with 'did you mean'.
Graph zoo_graph(std::string_view name);

// The rows' builders and the cell reader.
Graph build_resnet18();
Graph build_resnet34();
Graph build_resnet34_cifar10();
Graph build_resnext29_2x64d();
Graph build_densenet161();
Graph build_densenet169();
Graph build_densenet201();
Graph build_densenet100_cifar10();
Graph build_densenet161_cifar10();
Graph build_mobilenet_v2();
Graph build_mobilenet_v2_cifar10();
Graph build_vgg16_cifar10();
Graph build_bert_tiny();
Graph build_vit_tiny();
// 32x32 inputs, 16 channels, 5 cells a stage, 10 classes. Operations that reach no output are left out.
Graph build_nasbench201(const std::string& arch);

}  // namespace loopegg
