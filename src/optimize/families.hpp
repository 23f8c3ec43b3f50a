// Which sites the guard is asked about together, and what its answer says of each: one verdict on many sites alike is cheaper and clearer than many on one.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/verdict.hpp"
#include "optimize/sites.hpp"

namespace loopegg {

constexpr std::size_t most_together = 12;   // sites that one question may be about

// Sites of one family stand at the same stage of a network in the same role: their statements differ at most in the number of input channels, and each
// of them writes or reads a hidden width (hidden_widths.hpp) if the others do. Families come in runs of at most `most` neighbours, about equally long;
// sites that are kept are in none.
std::vector<std::vector<std::size_t>> families_of(const Graph& graph, const Sites& sites, std::size_t most = most_together);

// A verdict on several sites at once as one for each of them. What is lost is shared out by the work that each of them saves (`saved`), so that
// the shares multiply to what all keep; the evidence names the others and what was found of all ("together").
std::vector<Verdict> shared_out(const Verdict& joint, const std::vector<std::string>& sites, const std::vector<std::int64_t>& saved);

}  // namespace loopegg
