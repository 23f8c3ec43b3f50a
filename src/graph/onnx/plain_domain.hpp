// A restricted convolution or linear layer as the plainest ONNX operators that compute it: smaller operators on slices of channels, one grouped
// operator, or a whole one whose other weights are zero. Other runtimes are fast at these, and none of them gathers single elements.
#pragma once
#include <optional>

#include "graph/onnx/export_domain.hpp"

namespace loopegg {

// Gives nothing where the domain has no such form. The general form of expand_domain serves there.
std::optional<DomainExpansion> plain_domain(const Node& node);

}  // namespace loopegg
