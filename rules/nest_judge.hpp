// Judges a rule over loop nests: it is proved for all sizes, or refused.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "nest/schedule/matrix_unit.hpp"
#include "rules/rule.hpp"
#include "rules/verdict.hpp"

namespace loopegg {

// Small instances refute what is wrong in the usual ways. What they do not refute must be proved: rules over schedules and nests by
// rules/judge/schedule_judge.hpp, rules over sites in a row by rules/judge/value_proof.hpp, rules over whole networks by
// rules/judge/net_proof.hpp. `deep` tries many more instances. The same words get the same answer.
RuleVerdict judge_nest_rule(const Rule& rule, bool deep = false);

// Tries a rule over loop nests on small instances: isl, the analysis and the interpreter must all find nothing wrong.
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
