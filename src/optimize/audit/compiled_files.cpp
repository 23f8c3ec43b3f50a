#include "optimize/audit/compiled_files.hpp"

#include <set>

#include <fmt/format.h>

#include "backends/network/int8_calibration.hpp"
#include "backends/network/network.hpp"
#include "backends/target/machine_facts.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/scratch.hpp"
#include "base/sexpr.hpp"
#include "version.hpp"

namespace loopegg {
namespace {

namespace fs = std::filesystem;

// What a user links, loads and reads. Objects and sources next to it may be left out, for they are in network.so.
bool belongs_everywhere(const std::string& file) { return file == "network.so" || file == "network.h" || file == "network.json" || file == "weights.bin"; }
bool holds_weights(const std::string& file) { return file == "weights.bin" || file == "network.c" || file == "network.so"; }

bool is_this_machine(const std::string& cpu) {
    const std::string here = machine_facts().cpu;
    return here == cpu || here == "Arm part " + cpu;
}

std::vector<std::string> differences(const fs::path& folder, const fs::path& fresh, bool same_weights) {
    std::vector<std::string> faults;
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(fresh)) names.insert(entry.path().filename().string());
    for (const std::string& name : names) {
        const std::string shown = (folder.filename() / name).string();
        std::error_code ignored;
        if (!fs::exists(folder / name, ignored)) {
            if (belongs_everywhere(name)) faults.push_back(shown + ": it is gone");
        } else if ((same_weights || !holds_weights(name)) && read_file(folder / name) != read_file(fresh / name)) {
            faults.push_back(shown + ": it is not what the network compiles to with the schedules of network.json");
        }
    }
    return faults;
}

}  // namespace

FilesCheck check_compiled_files(std::span<const fs::path> folders, const Graph& graph, const Weights& weights, const CompiledBy& by, Progress& progress) {
    const fs::path& folder = folders.front();
    const JsonView manifest = read_json(read_source(folder / "network.json", 1 << 30));
    const Target target = find_target(manifest.at("target").text());
    const std::string where = "'" + folder.filename().string() + "'";
    if (target.gpu()) return {{}, "the code for a GPU in " + where + " was not compiled again"};
    if (by.version != version) return {{}, fmt::format("the code in {} is of version {} and was not compiled again", where, by.version)};
    if (target.reach == Reach::here && !is_this_machine(by.cpu))
        return {{}, fmt::format("the code in {} is for '{}' and was not compiled again on this machine", where, by.cpu)};
    Schedules schedules;
    for (const auto& [site, schedule] : manifest.at("schedules").members()) schedules[site] = parse_term(schedule.text());
    const ScratchFile name(".again");
    const ScratchFolder fresh(name.path());
    compile_network({graph, with_int8_scales(weights, manifest), schedules}, target, fresh.path(), &progress);
    FilesCheck check;
    for (const fs::path& f : folders) {
        std::vector<std::string> wrong = differences(f, fresh.path(), by.same_weights);
        check.faults.insert(check.faults.end(), wrong.begin(), wrong.end());
    }
    if (check.faults.empty() && by.errors) check.errors = site_errors(fresh.path(), graph);
    if (check.faults.empty()) check.held = fmt::format("the files of {} are what its network compiles to", where);
    return check;
}

}  // namespace loopegg
