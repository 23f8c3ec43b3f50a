// Reads (bilinear NAME :computes correlation :output ROWS :weights ROWS :input ROWS): a bilinear algorithm by its three matrices, where ROWS is
// ((1 0 -1/2) (0 1 1)). What is read is proved, so a rule that names an algorithm names a right one.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "base/sexpr.hpp"
#include "rules/complaints.hpp"
#include "rules/rule.hpp"

namespace loopegg {

// Gives none where the algorithm has a mistake. A matrix with a wrong entry is complained of at that entry.
std::optional<NamedAlgorithm> read_bilinear(const SExpr& form, const Language& language, Complaints& complaints);

// The rule with the leaf of each algorithm in place of its name.
SExpr with_algorithms(const SExpr& rule, const std::vector<NamedAlgorithm>& known);

// Lists that take algorithms get nothing else.
void check_algorithms(const Rule& rule, const std::vector<NamedAlgorithm>& known, Complaints& complaints);

}  // namespace loopegg
