// What is around a statement: an epilogue adds a last step to every output element, a layout says how a buffer is stored, an order says in
// which order a buffer has its dimensions.
#pragma once
#include <optional>

#include "nest/term/statement.hpp"

namespace loopegg {

bool is_wrapper(const Term& stmt);  // the statement inside is the last child

// The statement of (epilogue E STMT), (layout BUFFER AXIS k STMT) and (order BUFFER P STMT), made from the statement inside. All throw UserError for an
// impossible one.
Statement with_finish(Statement inside, const Term& stmt);
Statement with_blocking(Statement inside, const Term& stmt);
Statement with_order(Statement inside, const Term& stmt);

// P of (order BUFFER P STMT) that leaves a move out. The move is (order I p (move D0 D1 D2 D3)), and `moved` has its sizes. With P, a statement that read
// what the move wrote reads I of the move, and a statement that wrote I of the move writes its O. None where this would cut a dimension of BUFFER.
std::optional<std::int64_t> order_beyond_move(const Statement& s, int buffer, std::int64_t p, const Shape& moved);

// The dimension of a buffer that an axis walks step by step. None where the axis walks no dimension so.
std::optional<int> walked_dimension(const Statement& s, int buffer, int axis);

}  // namespace loopegg
