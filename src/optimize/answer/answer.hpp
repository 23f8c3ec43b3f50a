// What a run came to, from its network to what the last measurement says.
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "optimize/answer/confirm.hpp"
#include "optimize/run/run.hpp"
#include "optimize/search/find_networks.hpp"

namespace loopegg {

struct Answer {
    const Run& run;
    const FoundNetworks& found;
    const FoundNetwork* chosen;  // null: no network was better than the original
    const Tuning& original_tuning;
    const Tuning& tuning;  // of the chosen network
    const Confirmed& confirmed;

    const Network& returned() const { return confirmed.keep_original ? run.read.network : chosen->network; }
    const Tuning& returned_tuning() const { return confirmed.keep_original ? original_tuning : tuning; }
    const Trainings& trainings() const { return found.trainings.lines.empty() ? run.read.trainings : found.trainings; }
    const Derivation* derivation() const { return confirmed.keep_original ? nullptr : &chosen->derivation; }
};

// result.json without `seconds`: everything else that docs/reference/formats.md names.
nlohmann::json result_of(const Answer& answer);

// What the training runs of a search came to: result.json's "training".
nlohmann::json training_json(const Answer& answer, const NetworkTraining& training);

// Every file of the out folder next to result.json, which is `result`.
void write_out(const Answer& answer, const nlohmann::json& result);

// For every target but the one that was searched on: the original and the network that is extracted by the target's
// estimates, compiled. result.json's "targets".
nlohmann::json compile_for_others(const Answer& answer);

// Facts about the run, for model.onnx's metadata_props and for network.py, so that they stay with the file. By name: the version, the target, both latencies,
// the expected loss, and the plan. `result` is result.json, and `plan` the text of plan.json.
std::map<std::string, std::string> about_run(const nlohmann::json& result, const std::string& plan);

// The returned network in the forms that people use: model.json, weights.safetensors, model.onnx and network.py. `about` as about_run gives it.
void write_network(Graph graph, const Weights& weights, const std::map<std::string, std::string>& about, const std::filesystem::path& out, Progress& progress);

// Puts the compiled network into the out folder itself, too. It makes links, because weights are large.
void link_artifact(const std::filesystem::path& from, const std::filesystem::path& out);

}  // namespace loopegg
