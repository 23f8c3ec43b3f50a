// isl judges schedules: the instances they visit and the dependences they keep, as sets and maps of whole numbers.
//
// Nothing here uses the facts of facts.hpp or the loop trees of resolve(). A schedule is read as its axes say, instance by instance. So a
// mistake in the facts, in resolve() or here shows in a comparison with another of the three.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "nest/domain/instance_sets.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {

struct JudgeOptions {
    bool strict_fp = false;     // sums must be taken in the naive order as well
    bool may_restrict = false;  // visiting a part of the domain is enough (neural rules)
};

// Says why the schedule is not one of the statement, or nothing. A wrong schedule leaves instances out, visits some twice or outside the
// domain, reverses a dependence, or runs dependent instances at the same time (par, vec, bind).
std::optional<std::string> isl_judge(const Statement& statement, const Term& sched, const JudgeOptions& options = {});
std::optional<std::string> isl_judge(const Term& nest, const JudgeOptions& options = {});

// Whether two schedules of a statement visit the same instances; whether the second visits fewer than the first and none besides.
bool isl_same_domain(const Statement& statement, const Term& a, const Term& b);
bool isl_restricts(const Statement& statement, const Term& whole, const Term& part);
// Whether a schedule visits just the instances of a union of restrictions.
bool isl_visits(const Statement& statement, const Term& sched, const std::vector<Restrictions>& parts);

// The same questions of unions of restrictions, over the iterators given (leaves with extents).
bool isl_equal(const std::vector<Term>& iterators, const std::vector<Restrictions>& a, const std::vector<Restrictions>& b);
bool isl_disjoint(const std::vector<Term>& iterators, const std::vector<Restrictions>& a, const std::vector<Restrictions>& b);

}  // namespace loopegg
