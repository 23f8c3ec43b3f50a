// Checks, before the work begins, what a run needs of its machine. So a mistake shows after a second and not after an hour.
#pragma once
#include "base/progress.hpp"
#include "optimize/run/request.hpp"

namespace loopegg {

struct Target;

// Throws UserError with the cause and what to do: no such target, no compiler, a board that does not answer, no space for temporary files, stores
// that cannot be used, data that is missing.
void preflight(const OptimizeRequest& request, Progress& progress);

// Sets the number of threads (loopeggrt_default_threads) on which kernels and compiled networks run in this process and
// in the processes that it starts; 0 leaves
// it as it is. Throws UsageError if this machine has fewer processors, or if kernels for the target do not run here. Call it before targets are read for work,
// because the target of this machine has as many cores as there are threads.
void use_threads(int threads, const Target& target);

}  // namespace loopegg
