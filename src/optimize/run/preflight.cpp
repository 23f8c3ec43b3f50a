#include "optimize/run/preflight.hpp"

#include <filesystem>

#include "backends/measure/latency_store.hpp"
#include "backends/measure/tvm_measurer.hpp"
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

}  // namespace loopegg
