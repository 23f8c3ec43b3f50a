// Where images come from: CIFAR-10's binary files, a folder of .npy batches, or a seeded imitation when the user has none.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fisher/engine.hpp"

namespace loopegg {

struct BatchSet {
    std::vector<Batch> batches;
    std::string source;         // for the evidence: "cifar10 /data/cifar10", "synthetic"
    bool synthetic = false;
};

// Batches of n images each, `count` of them, drawn by the seed. `spec` is a folder, or "synthetic" (or empty) for drawn pictures (dead_leaves.hpp; normal
// noise for inputs that are no images) with random labels. The network says what an image and a label look like. Throws UserError: no such folder, a
// torn or empty file, images of another shape, a label beyond the network's classes, fewer than one image a batch.
BatchSet load_batches(const std::string& spec, const Graph& graph, std::int64_t n, std::int64_t count, std::uint64_t seed);

// Everything in the folder, for training: the training part and the test part (of CIFAR-10; of .npy batches, the last tenth).
// limit: at most so many images of each; 0: all.
struct Splits {
    Batch train, test;
    std::string source;
};
Splits load_splits(const std::string& spec, const Graph& graph, std::int64_t limit, std::uint64_t seed);

std::int64_t classes_of(const Graph& graph);   // the last dimension of its first output

}  // namespace loopegg
