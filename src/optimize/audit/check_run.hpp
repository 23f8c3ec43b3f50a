// Checks the folder of a run and trusts nothing that made it: whether the files belong together, the plan makes the network from the original, the
// proofs hold, the figures add up, and the compiled network computes what model.json describes.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "optimize/audit/replay.hpp"

namespace loopegg {

struct RunChecks {
    std::vector<SiteCheck> sites;     // one for each site of the original, in the original's order
    std::vector<std::string> held;    // what was found true, one sentence each
    std::vector<std::string> faults;  // what was found wrong: the file, and what is wrong with it
    bool valid() const;
};

// `recheck` names the original model, and the guard is then asked again about the returned network. With "" the evidence is only read.
RunChecks check_run(const std::filesystem::path& folder, const std::string& recheck, Progress& progress);

}  // namespace loopegg
