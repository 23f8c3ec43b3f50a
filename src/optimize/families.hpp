// Which sites the guard is asked about together, and what its answer says of each site. One verdict on many similar sites is cheaper and clearer than one
// verdict on each.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/verdict.hpp"
#include "optimize/sites.hpp"

namespace loopegg {

constexpr std::size_t most_together = 12;  // sites that one question may be about

// Sites of one family have the same role in the same stage of a network. Their statements differ at most in the number of input channels, and each
// of them writes or reads a hidden width (hidden_widths.hpp) if the others do. Families come in runs of at most `most` neighbours, about equally long.
// Sites that are kept are in no family.
std::vector<std::vector<std::size_t>> families_of(const Graph& graph, const Sites& sites, std::size_t most = most_together);

// Turns one verdict on several sites into one verdict for each site. The loss is shared out by the work that each site saves (`saved`), so that the
// kept shares of the sites multiply to what all of them keep. The evidence names the other sites and the joint answer ("together").
std::vector<Verdict> verdict_of_each_site(const Verdict& joint, const std::vector<std::string>& sites, const std::vector<std::int64_t>& saved);

}  // namespace loopegg
