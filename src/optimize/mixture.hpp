// Neighbours must not all lose the same: what five blocks of a stage all do without, the stage is without.
#pragma once
#include <vector>

#include "optimize/choose.hpp"
#include "optimize/sites.hpp"
#include "optimize/variant.hpp"

namespace loopegg {

// Of a family (families.hpp) at most half, rounded up, may be restricted in one way (restriction_kind), however much of
// it. No guard sees the difference: blocks that
// all read the first quarter of a stage's channels keep as much as blocks of which some read a quarter and others work in four groups, but lose more when they
// are trained (docs/explanation/search.md). Options that stand only together with another site's follow that one, and are not counted. `options` by site.
std::vector<AtMost> mixture_limits(const std::vector<std::vector<std::size_t>>& families, const std::vector<std::vector<SiteOption>>& options,
                                   const std::vector<Variant>& variants);

}  // namespace loopegg
