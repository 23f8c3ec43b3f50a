// The way from an original nest to each variant, read from the e-graph: exact steps by proof, neural steps by edge, in order.
#pragma once
#include <span>
#include <vector>

#include "egraph/egraph.hpp"
#include "egraph/rewrite.hpp"
#include "optimize/variant.hpp"

namespace loopegg {

// Fills in `steps` of each variant. `roots` are the original nests by kind; `rules` are the rules that the e-graph was grown with.
void derive_steps(const EGraph& graph, const std::vector<Rewrite>& rules, std::span<const Term> roots, std::span<Variant> variants);

}  // namespace loopegg
