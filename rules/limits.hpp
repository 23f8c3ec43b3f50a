// How far the engine goes in a phase of a rule file.
#pragma once
#include "egraph/runner.hpp"
#include "rules/rule.hpp"

namespace loopegg {

RunOptions limits_of(const Phase& phase);  // what the phase leaves open is the engine's own

}  // namespace loopegg
