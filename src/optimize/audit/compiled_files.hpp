// Compiles a network again as the network.json of its folder says, and compares what comes out with the files that are there.
#pragma once
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "backends/network/site_error.hpp"
#include "base/progress.hpp"
#include "graph/graph.hpp"

namespace loopegg {

struct FilesCheck {
    std::vector<std::string> faults;            // the file, and what is wrong with it
    std::string held;                           // what was found, or why nothing was compared
    std::map<std::string, SiteError> errors{};  // of the sites, where they were compiled again and CompiledBy asks for them
};

// `machine` is result.json's, and `version` the version that made the run: code for another processor, or of another version, is not compared. Where the
// weights are not those that the folder was compiled with (a trained original is not kept), files that hold them are left out.
struct CompiledBy {
    std::string cpu, version;
    bool same_weights = true, errors = true;
};
// The folders hold one network, which is compiled as the first of them says.
FilesCheck check_compiled_files(std::span<const std::filesystem::path> folders, const Graph& graph, const Weights& weights, const CompiledBy& by,
                                Progress& progress);

}  // namespace loopegg
