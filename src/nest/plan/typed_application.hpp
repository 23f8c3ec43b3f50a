// An application of a rule as a person types it in one line: 'group-axes a=co b=ci g=4'.
#pragma once
#include "nest/plan/plan.hpp"

namespace loopegg {

// RULE, then VARIABLE=VALUE for each variable (with or without its '?'), and restore=WORD, part=N or backwards where a plan has these. A value is an axis or a
// number, or an expression in parentheses: b='(quo oh 16)' is typed b=(quo oh 16). Throws UserError with the column of what cannot be read.
Application read_typed_application(const SourcePtr& source);

}  // namespace loopegg
