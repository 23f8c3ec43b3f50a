// Checks the folder of a run and trusts nothing that made it. Its files belong together, its plan makes its network of the original, its proofs
// hold, its figures add up, and what was compiled computes what the network's own description computes.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "optimize/replay.hpp"

namespace loopegg {

struct RunChecks {
    std::vector<SiteCheck> sites;     // one for each site of the original, in its order
    std::vector<std::string> held;    // what was found true, one sentence each
    std::vector<std::string> faults;  // what was not: the file, and what is wrong with it
    bool valid() const;
};

// `recheck` names the original model, and the guard is then asked again about the returned network. With "" the evidence is only read.
RunChecks check_run(const std::filesystem::path& folder, const std::string& recheck, Progress& progress);

}  // namespace loopegg
