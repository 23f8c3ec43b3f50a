#include "optimize/run/preflight.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "backends/measure/latency_store.hpp"
#include "backends/measure/tvm_measurer.hpp"
#include "backends/runtime/loopegg_runtime.h"
#include "backends/target/target.hpp"
#include "base/error.hpp"
#include "base/scratch.hpp"
#include "base/sexpr.hpp"
#include "fisher/evidence.hpp"
#include "optimize/run/rounding_data.hpp"

namespace loopegg {
namespace {

// Asks the board to run one small nest: a board that cannot do this can do nothing.
void ask_board(const Target& target, Progress& progress) {
    progress.note("asking the board of target '" + target.name + "' at " + target.address);
    MeasurerOptions options;
    options.workers = 1, options.rounds = 1, options.samples = 1, options.limits.seconds = 30;
    const Candidate one[]{{parse_term("(nest (zip + 8) (at x done))"), target.name}};
    TvmMeasurer(options).measure(one);
}

// What this process may use, whatever LOOPEGG_THREADS says.
int allowed_processors() {
    cpu_set_t set;
    const int allowed = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
    const int quota = loopeggrt_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    return std::max(1, quota > 0 ? std::min(quota, allowed) : allowed);
}

}  // namespace

void preflight(const OptimizeRequest& request, Progress& progress) {
    const Target target = allowing(find_target(request.target), request.allowed);
    if (target.allowed.contains("int8")) require_data_for_scales(request.data);
    write_scratch(ScratchFile(".try").path(), "space for temporary files");
    LatencyStore(default_store()).counts();
    EvidenceStore(default_evidence()).find({});
    std::error_code none;
    if (!request.data.empty() && !std::filesystem::exists(request.data, none))
        throw UserError("there is no data at '" + request.data + "': expected a folder of CIFAR-10 or of .npy batches");
    if (target.on_board()) ask_board(target, progress);
}

void use_threads(int threads, const Target& target) {
    if (threads == 0) return;
    if (target.reach != Reach::here)
        throw UsageError(Diagnostic{fmt::format("--threads: kernels for the target '{}' do not run on this machine", target.name),
                                    {},
                                    fmt::format("its schedules are made for {} cores, as its file or its board states", target.machine.cores)});
    if (const int here = allowed_processors(); threads > here)
        throw UsageError(Diagnostic{
            fmt::format("--threads {}: this process may use {} of the processors here, and schedules are timed on as many threads as they are made for",
                        threads, here),
            {},
            "run it where there are as many, or make that machine a target that ssh reaches ('loopegg targets --help')"});
    setenv("LOOPEGG_THREADS", std::to_string(threads).c_str(), 1);  // the processes that compile and time inherit it
}

}  // namespace loopegg
