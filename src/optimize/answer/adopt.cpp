#include "optimize/answer/adopt.hpp"

#include <set>

#include <fmt/format.h>

#include "backends/network/int8_calibration.hpp"
#include "backends/network/network.hpp"
#include "base/atomic_directory.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"
#include "base/json.hpp"
#include "graph/load.hpp"
#include "graph/safetensors.hpp"
#include "graph/weights.hpp"
#include "optimize/answer/answer.hpp"
#include "optimize/answer/certificate.hpp"
#include "optimize/run/rounding_data.hpp"

namespace loopegg {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;

// The folders of the compiled network that was returned, for the target of the run and for the other targets that it was compiled for. A target with a
// network of its own has other weights.
std::vector<fs::path> compiled_folders(const json& result) {
    std::vector<fs::path> all{result.at("returned").get<std::string>()};
    if (result.contains("targets"))
        for (const json& t : result["targets"])
            if (t.contains("optimized") && !t.contains("network")) all.push_back(fs::path(t.at("target").get<std::string>()) / "optimized");
    return all;
}

bool inside(const fs::path& name, const std::vector<fs::path>& folders) {
    return std::any_of(folders.begin(), folders.end(), [&](const fs::path& f) {
        const fs::path within = name.lexically_relative(f);
        return !within.empty() && *within.begin() != "..";
    });
}

// What does not depend on the weights of the returned network is linked, because it is large and stays as it is.
void link_the_rest(const fs::path& from, const fs::path& to, const std::vector<fs::path>& compiled) {
    std::set<std::string> made{"weights.safetensors", "model.json",  "model.onnx",       "model.onnx.data",
                               "network.py",          "result.json", "certificate.json", "report.html"};
    for (const auto& entry : fs::directory_iterator(from / compiled[0])) made.insert(entry.path().filename().string());
    const json manifest = parse_json_file(from / "manifest.json");
    for (const auto& [name, entry] : manifest.at("files").items()) {
        if (made.contains(name) || inside(name, compiled)) continue;
        fs::create_directories((to / name).parent_path());
        std::error_code failed;
        fs::create_hard_link(from / name, to / name, failed);
        if (failed) fs::copy_file(from / name, to / name);
    }
}

}  // namespace

json adopt_weights(const fs::path& from, const fs::path& weights_file, const std::string& data, const fs::path& to, Progress& progress) {
    json result = parse_json_file(from / "result.json");
    const Graph graph = load_graph((from / "model.json").string());
    Weights weights = read_safetensors(weights_file);
    check_weights(graph, weights, weights_file.string());
    const std::vector<fs::path> compiled = compiled_folders(result);
    if (has_int8_scales(read_json(read_source(from / compiled[0] / "network.json", 1 << 30)))) {
        require_data_for_scales(data);
        weights.merge(int8_scales(graph, weights, rounding_data(data, graph, result.at("seed"), true).calibration));
    }
    progress.stage("compile");
    for (const fs::path& folder : compiled) {
        recompile(from / folder, graph, weights, to / folder, &progress);
        seal_folder(to / folder);
    }
    progress.finish(fmt::format("the kernels of {}", (from / compiled[0]).string()));
    progress.stage("write");
    link_the_rest(from, to, compiled);
    result["adopted"] = {{"file", weights_file.filename().string()}, {"hash", hash_of(read_file(weights_file)).hex()}};
    write_network(graph, weights, about_run(result, read_file(from / "plan.json")), to, progress);
    link_artifact(to / compiled[0], to);
    write_file(to / "result.json", result.dump(1));
    if (fs::exists(from / "certificate.json")) {  // versions before 0.2 wrote none
        json certificate = parse_json_file(from / "certificate.json");
        certificate["files"] = certified_files(to, result);
        write_file(to / "certificate.json", certificate.dump() + "\n");
    }
    progress.finish("");
    return result;
}

}  // namespace loopegg
