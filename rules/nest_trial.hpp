// Tries a rule over loop nests on small instances: isl, the analysis and the interpreter must all find nothing wrong.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "nest/schedule/matrix_unit.hpp"
#include "rules/rule.hpp"

namespace loopegg {

struct TrialEffort {
    int instances = 12;  // how many instances that the rule matches are tried
    int attempts = 600;  // draws of an instance before giving up
};

// Instances are drawn from a seed that depends on the rule alone, so the same rule gets the same answer. They refute an exact rule when some instance changes
// its domain, reverses a dependence, runs dependent instances at once, or computes something else, and a neural rule when it keeps everything or visits
// anything new.
std::optional<Refutation> try_nest_rule(const Rule& rule, const TrialEffort& effort = {});
// The same over statements with axes of these extents.
std::optional<Refutation> try_nest_rule_at(const Rule& rule, const std::vector<std::int64_t>& sizes);

// Units that a machine might have, for trials: small ones, because the nests are small.
std::vector<MatrixUnit> units_for_trials(bool gpu);

}  // namespace loopegg
