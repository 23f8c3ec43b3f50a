// Checks, before the work begins, what a run needs of its machine. So a mistake shows after a second and not after an hour.
#pragma once
#include "base/progress.hpp"
#include "optimize/run/request.hpp"

namespace loopegg {

// Throws UserError with the cause and what to do: no such target, no compiler, a board that does not answer, no space for temporary files, stores
// that cannot be used, data that is missing.
void preflight(const OptimizeRequest& request, Progress& progress);

}  // namespace loopegg
