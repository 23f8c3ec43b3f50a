// Neighbours must not all lose the same part: when five blocks of a stage all leave out a part, the whole stage lacks that part.
#pragma once
#include <vector>

#include "optimize/choose.hpp"
#include "optimize/sites.hpp"
#include "optimize/variant.hpp"

namespace loopegg {

// At most half of a family (families.hpp), rounded up, may be restricted in one way (restriction_kind), whatever share each site keeps. No guard sees
// this loss. Blocks that all read the first quarter of a stage's channels keep as much as blocks of which some read a quarter and others work in four
// groups, but the former lose more when they are trained (docs/explanation/search.md). An option that may be picked only together with an option of
// another site is not counted. `options` are by site.
std::vector<AtMost> mixture_limits(const std::vector<std::vector<std::size_t>>& families, const std::vector<std::vector<SiteOption>>& options,
                                   const std::vector<Variant>& variants);

}  // namespace loopegg
