// What kind of network a graph is, after Verma (2022): rule sets may be tagged with these classes and chosen by them.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.hpp"
#include "graph/graph.hpp"

namespace loopegg {

enum class ArchitectureClass { plain, residual, mobile, dense, detection, transformer };

struct Architecture {
    ArchitectureClass kind = ArchitectureClass::plain;
    std::string why;  // what was seen: "16 of 33 convolutions are followed by an addition with an earlier tensor"
};

const char* to_string(ArchitectureClass kind);
std::optional<ArchitectureClass> architecture_class(std::string_view name);  // none for a name that is no class
const std::vector<std::string>& architecture_class_names();                  // for 'did you mean'

// Reads structure alone, never names. It looks for attention, several output scales, depthwise convolutions, tensors carried along by
// concatenation, and additions of an earlier tensor, in this order. The first of these that shapes the network decides the class. Where none does, the
// network is plain.
Architecture classify_architecture(const Graph& graph);

// Recognises a network again, whatever its file, its exporter and its nodes are called.

// Looks at the sites alone: their operators, their attributes and the shapes of their weights. Two networks with equal sites have one hash, also where their
// images, their batches, the order of their nodes or what is between the sites differ. Biases do not count, because exporters fold batch norms into them.
Hash128 architecture_hash(const Graph& graph);

}  // namespace loopegg
