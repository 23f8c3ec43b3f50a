// What stands around a statement: an epilogue adds a last step to every output element, a layout says how a buffer is stored.
#pragma once
#include <optional>

#include "nest/term/statement.hpp"

namespace loopegg {

// The statement of (epilogue E STMT) and of (layout BUFFER AXIS k STMT), made from the statement inside. Both throw UserError for an impossible one.
Statement with_finish(Statement inside, const Term& stmt);
Statement with_blocking(Statement inside, const Term& stmt);

// The dimension of a buffer that an axis walks step by step. None where the axis walks no dimension so.
std::optional<int> walked_dimension(const Statement& s, int buffer, int axis);

}  // namespace loopegg
