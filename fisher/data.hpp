// Where images come from: CIFAR-10's binary files, a folder of .npy batches, or a seeded imitation when the user has none.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fisher/engine.hpp"

namespace loopegg {

struct BatchSet {
    std::vector<Batch> batches;
    std::string source;  // for the evidence: "cifar10 /data/cifar10", "synthetic"
    bool synthetic = false;
};

// The seed draws `count` batches of n images each. `spec` is a folder, or "synthetic" (or empty) for drawn pictures with random labels (dead_leaves.hpp;
// normal noise for inputs that are no images). The network decides the shape of an image and the number of classes. Throws UserError for a missing folder,
// a truncated or empty file, images of another shape, a label beyond the network's classes, and batches of fewer than one image.
BatchSet load_batches(const std::string& spec, const Graph& graph, std::int64_t n, std::int64_t count, std::uint64_t seed);

// One batch of at most n different images.
BatchSet load_some(const std::string& spec, const Graph& graph, std::int64_t n, std::uint64_t seed);

// Everything in the folder, for training: the training part and the test part. CIFAR-10 has both; of .npy batches, the last tenth is the test
// part. Each part has at most `limit` images, unless that is 0.
Splits load_splits(const std::string& spec, const Graph& graph, std::int64_t limit, std::uint64_t seed);

std::int64_t classes_of(const Graph& graph);  // the last dimension of its first output

}  // namespace loopegg
