// What stands around a statement: an epilogue adds a last step to every output element, a layout says how a buffer is stored.
#pragma once
#include "nest/term/statement.hpp"

namespace loopegg {

// Of (epilogue E STMT) and of (layout BUFFER AXIS k STMT), from the statement inside. Throw UserError for what cannot be.
Statement with_finish(Statement inside, const Term& stmt);
Statement with_blocking(Statement inside, const Term& stmt);

}  // namespace loopegg
