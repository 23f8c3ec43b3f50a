// How far the engine goes in a phase of a rule file.
#pragma once
#include "egraph/runner.hpp"
#include "rules/rule.hpp"

namespace loopegg {

RunOptions limits_of(const Phase& phase);  // and the scheduler; where the phase says nothing, the engine's defaults hold

}  // namespace loopegg
