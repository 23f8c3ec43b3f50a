// Sets of instances given by restrictions, compared exactly: by their form, by trying every value, or by isl where there are too many.
#pragma once
#include <vector>

#include "base/term.hpp"

namespace loopegg {

using Restrictions = std::vector<Term>;  // all hold: (span A lo hi), (diag G A B)

bool parts_disjoint(const std::vector<Restrictions>& a, const std::vector<Restrictions>& b);
bool same_parts(const std::vector<Restrictions>& a, const std::vector<Restrictions>& b);

// The same values, defined at the same instances.
bool same_axis(const Term& a, const Restrictions& where_a, const Term& b, const Restrictions& where_b);

}  // namespace loopegg
