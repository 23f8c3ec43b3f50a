// Reads one (rule NAME LEFT arrow RIGHT :for ... :when ...) and checks it by itself.
#pragma once
#include <optional>

#include "base/sexpr.hpp"
#include "rules/complaints.hpp"
#include "rules/rule.hpp"

namespace loopegg {

// Gives none when the rule has a mistake; `complaints` gets all mistakes of the rule.
std::optional<Rule> read_rule(const SExpr& form, const Language& language, const std::string& set, Complaints& complaints);

// The name of a rule, ruleset or phase: an atom that is no number, variable, keyword or arrow. Complains, and gives "" otherwise.
std::string read_name(const SExpr& form, const char* what, Complaints& complaints);

// Reads (phase NAME :rules SET... :iterations N :nodes N :seconds S :scheduler simple|backoff).
std::optional<Phase> read_phase(const SExpr& form, Complaints& complaints);

}  // namespace loopegg
