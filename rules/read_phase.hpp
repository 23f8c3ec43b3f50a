// Reads (phase NAME :rules SET... :iterations N :nodes N :seconds S :scheduler simple|backoff).
#pragma once
#include <optional>

#include "base/sexpr.hpp"
#include "rules/complaints.hpp"
#include "rules/rule.hpp"

namespace loopegg {

std::optional<Phase> read_phase(const SExpr& form, Complaints& complaints);

}  // namespace loopegg
