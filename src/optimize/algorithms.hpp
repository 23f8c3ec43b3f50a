// Other ways to compute a site, found by the rules over values (rules/algorithms.rules): several nests in a row that together compute the site.
#pragma once
#include <vector>

#include "base/term.hpp"
#include "rules/rule.hpp"

namespace loopegg {

// The VALUEs (prepare HOW ROW) that the phase makes equal to a site of this nest. Their nests are naive. Empty where sums must keep their order.
std::vector<Term> rows_for(const Term& nest, const RuleBook& book, const Phase& phase, bool strict_fp);

// The same row with other nests, one for each nest of the row.
Term with_nests(const Term& row, const std::vector<Term>& nests);

}  // namespace loopegg
