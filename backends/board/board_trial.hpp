// One candidate on a board: it is loaded, its output is compared with the expected one, and only then it is timed.
//
// A request has the lines 'symbol', 'samples', 'tolerance' (0: bit for bit), 'object BYTES', and one 'buffer FLOATS' for each parameter (the output first).
// Its bytes are the object, the operands in the kernel's own layout, and the expected output, where NaN represents elements that nobody reads.
#pragma once
#include "backends/board/board_message.hpp"

namespace loopegg {

// The answer is 'state timed' with 'ms', 'clean', 'governor' and 'celsius', or 'state wrong' with 'why' when the candidate itself is at fault, or
// 'state failed' with 'why' when something else is. run_trial runs the candidate's code in this process, so call it in a process that may die.
BoardMessage run_trial(const BoardMessage& request);

}  // namespace loopegg
