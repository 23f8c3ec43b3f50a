// A picture of a small e-graph in Graphviz's language: a box per class, its nodes inside.
#pragma once
#include <string>

#include "extract/serialized.hpp"

namespace loopegg {

// Throws UserError when there are more than `most` nodes: nobody can read such a picture.
std::string to_dot(const SerializedEGraph& egraph, std::size_t most = 500);

}  // namespace loopegg
