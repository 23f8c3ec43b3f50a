// How far the engine goes in a phase of a rule file.
#pragma once
#include "egraph/runner.hpp"
#include "rules/rule.hpp"

namespace loopegg {

// The limits and the scheduler of the phase. Where the phase says nothing, the engine's defaults hold.
RunOptions limits_of(const Phase& phase);

}  // namespace loopegg
