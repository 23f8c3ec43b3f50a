// Converts between nest terms and graph domains: which of a statement's instances a schedule visits.
#pragma once
#include "graph/domain.hpp"
#include "graph/operators.hpp"
#include "nest/term/axis.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {

// The conditions under which an axis is defined: (span A lo hi) and (diag G A B) in normal form, each once, sorted by text.
std::vector<Term> restrictions(const Term& axis);

// The instances that a NEST visits, as a graph domain; whole() if the nest visits all of them. This function trusts the axes: resolve()
// refuses a schedule that walks some digit twice or not at all.
Domain domain_of(const Term& nest);
Domain domain_of(const Statement& statement, const Term& sched);

// The same from the restrictions of each part alone.
Domain domain_of_parts(const Statement& statement, const std::vector<std::vector<Term>>& parts);

// A naive schedule over exactly these instances: diagonals first, then every digit in the order of the statement's axes.
Term schedule_of(const Statement& statement, const Domain& domain);

// How the statement's axes look to a graph domain.
std::vector<Axis> graph_axes(const Statement& statement);

}  // namespace loopegg
