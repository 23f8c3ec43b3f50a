// On how many threads kernels run in this process and in the processes that it starts: schedules are tried with so many, and compiled networks use so many.
#pragma once

namespace loopegg {

struct Target;

// Changes that number (loopeggrt_default_threads); 0 leaves it as it is. Throws UsageError if this machine has fewer
// processors, or if kernels for the target do not run here.
// Call it before targets are read for work, because the target of this machine has as many cores as there are threads.
void use_threads(int threads, const Target& target);

}  // namespace loopegg
