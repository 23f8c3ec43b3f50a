// A restricted convolution or linear layer as the plainest ONNX operators that compute it: smaller operators on slices of channels, one grouped
// operator, or a whole one whose other weights are zero. What stands in other runtimes' fast paths, and no gathering of single elements.
#pragma once
#include <optional>

#include "graph/onnx/export_domain.hpp"

namespace loopegg {

// Nothing where the domain has no such form: then expand_domain's general one serves.
std::optional<DomainExpansion> plain_domain(const Node& node);

}  // namespace loopegg
