// Recognises a network again, whatever its file, its exporter and its nodes are called.
#pragma once
#include "base/hash.hpp"
#include "graph/graph.hpp"

namespace loopegg {

// Looks at the sites alone: their operators, their attributes and the shapes of their weights. Two networks with equal sites have one hash, also where their
// images, their batches, the order of their nodes or what lies between the sites differ. Biases do not count, because exporters fold batch norms into them.
Hash128 architecture_hash(const Graph& graph);

}  // namespace loopegg
