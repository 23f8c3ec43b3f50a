// Schedules near one that turned out well: what the exact rules of the target's own set make of it.
#pragma once
#include <cstdint>
#include <vector>

#include "base/term.hpp"
#include "rules/rule.hpp"

namespace loopegg {

// Up to `most` distinct nests equal to `nest`, drawn from the e-graph that the phase grows around it; never `nest` itself.
std::vector<Term> neighbours(const Term& nest, const RuleBook& book, const Phase& phase, std::uint64_t seed, std::size_t most);

}  // namespace loopegg
