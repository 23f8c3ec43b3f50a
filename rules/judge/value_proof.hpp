// Proves rules over sites in a row: both sides compute the same over the real numbers, whatever the values, sizes and constants are.
#pragma once
#include "rules/rule.hpp"
#include "rules/verdict.hpp"

namespace loopegg {

RuleVerdict prove_value_rule(const Rule& rule);

}  // namespace loopegg
