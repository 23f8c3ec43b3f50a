// Runs a nest on small buffers in exactly the order that its term says. It is slow, and independent of every other way to run a nest.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "nest/run/loop_tree.hpp"

namespace loopegg {

// Buffers by name, in logical row-major order. Values are float32, and every step is rounded to float32.
using Buffers = std::map<std::string, std::vector<float>>;

// The output of the nest. `buffers` holds every buffer but O (an O that the statement reads may be given; else it starts as 0).
// Elements that no instance computes and no restore brings back are 0.
std::vector<float> interpret(const Term& nest, const Buffers& buffers);
std::vector<float> interpret(const Statement& statement, const LoopTree& tree, const Buffers& buffers);

// The same from the statement alone: each output element by itself, its instances in the order of the statement's axes, with no
// loop tree at all. The instances are those of `domain`.
std::vector<float> reference(const Statement& statement, const Domain& domain, const Buffers& buffers);

// Buffers of small whole numbers (sums of products stay exact in float32), or of random floats.
Buffers whole_number_buffers(const Statement& statement, std::uint64_t seed);
Buffers random_buffers(const Statement& statement, std::uint64_t seed);

}  // namespace loopegg
