// Where images come from: CIFAR-10's binary files, a folder of .npy batches, or a seeded imitation when the user has none.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fisher/engine.hpp"
#include "graph/graph.hpp"

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

// Everything in the folder, for training: the training part and the test part. A folder may have both as folders (train; val, valid, validation or test), and
// CIFAR-10 has both as files. Otherwise a tenth of the images is the test part, drawn alike for every network and seed. Each part has at most `limit` images,
// unless that is 0.
Splits load_splits(const std::string& spec, const Graph& graph, std::int64_t limit, std::uint64_t seed);

std::int64_t classes_of(const Graph& graph);  // the last dimension of its first output

// Images for a guard whose user gave none: discs of all sizes that are on each other like leaves.

// The seed draws images of the shape (n, channels, height, width). Like photographs, and unlike noise, they have similar neighbours, edges, as much
// contrast at every size, and channels that mostly agree. Every pixel by itself is normally distributed (mean 0, deviation 1).
std::vector<float> dead_leaves(const Shape& images, std::uint64_t seed);

// Random numbers that are the same on every machine, unlike those of std's distributions.
inline std::uint64_t splitmix(std::uint64_t& state) {
    state += 0x9e3779b97f4a7c15ull;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

}  // namespace loopegg
