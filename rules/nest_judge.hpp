// Judges a rule over loop nests: it is proved for all sizes, or refused.
#pragma once
#include "rules/rule.hpp"
#include "rules/verdict.hpp"

namespace loopegg {

// Small instances refute what is wrong in the usual ways. What they do not refute must be proved: rules over schedules and nests by
// rules/judge/schedule_judge.hpp, rules over sites in a row by rules/judge/value_proof.hpp. Rules over whole networks are tried alone. `deep` tries many
// more instances. The same words get the same answer.
RuleVerdict judge_nest_rule(const Rule& rule, bool deep = false);

}  // namespace loopegg
