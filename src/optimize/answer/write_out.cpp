// Writes the out folder: the returned network in every form that people use, how the network was made, and the evidence.
#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "backends/network/int8_calibration.hpp"
#include "base/fault.hpp"
#include "base/files.hpp"
#include "base/system_words.hpp"
#include "graph/model_json.hpp"
#include "graph/onnx/onnx.hpp"
#include "graph/pytorch/network_py.hpp"
#include "graph/safetensors.hpp"
#include "nest/domain/domain.hpp"
#include "optimize/answer/answer.hpp"
#include "optimize/answer/certificate.hpp"
#include "optimize/answer/named_sequences.hpp"
#include "optimize/answer/site_row.hpp"

namespace loopegg {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;

json steps_json(const std::vector<DerivationStep>& all) {
    json steps = json::array();
    for (const DerivationStep& s : all) {
        json with = json::object();
        for (const auto& [name, value] : s.with) with[name] = to_string(value);
        steps.push_back(
            {{"rule", s.rule}, {"kind", s.neural ? "neural" : "exact"}, {"with", with}, {"before", to_string(s.before)}, {"after", to_string(s.after)}});
        if (s.backwards) steps.back()["backwards"] = true;
    }
    return steps;
}

// A site of the returned network: how its nest was restricted, where it was.
json sequence_json(const Answer& answer, const Site& site) {
    const Sites& read = answer.run.read.network.sites;
    const auto was = std::find_if(read.all.begin(), read.all.end(), [&](const Site& s) { return s.name == site.name; });
    const Node& node = *answer.returned().graph.find(site.name);
    const Derivation* derivation = answer.derivation();
    const auto found = derivation ? derivation->nests.find(site.name) : std::map<std::string, NestDerivation>::const_iterator{};
    NestDerivation nest{nest_of(node), nest_of(node), {}, {}, {}};
    if (derivation && found != derivation->nests.end()) nest = found->second;
    std::string key;
    for (const DerivationStep& step : nest.steps) key += (key.empty() ? "" : " ") + step.rule;
    json steps = steps_json(nest.steps);
    for (const auto& [step, verdict] : nest.asked)
        steps.at(step)["judged"] = {{"allowed", verdict.allowed}, {"why", verdict.why}, {"evidence", verdict.evidence}};
    return {{"name", site.name},
            {"sequence", was == read.all.end() ? "restore" : sequence_of(answer, *was)},
            {"key", key},
            {"effect", domain_text(domain_of(nest.to))},
            {"steps", steps},
            {"original", to_string(nest.from)},
            {"chosen", to_string(nest.to)},
            {"proofs", nest.proofs}};
}

json sequences_json(const Answer& answer) {
    json sites = json::array();
    for (const Site& site : answer.returned().sites.all) sites.push_back(sequence_json(answer, site));
    json all{{"sites", sites}};
    if (const Derivation* d = answer.derivation())
        all["network"] = {{"original", to_string(d->from)},
                          {"chosen", to_string(d->to)},
                          {"channels_multiple", answer.run.request.channels_multiple},
                          {"steps", to_json(d->steps)}};
    return all;
}

}  // namespace

std::map<std::string, std::string> about_run(const nlohmann::json& result, const std::string& plan) {
    std::map<std::string, std::string> about{{"loopegg.version", result.at("version").get<std::string>()},
                                             {"loopegg.target", result.at("target").get<std::string>()},
                                             {"loopegg.returned", result.at("returned").get<std::string>()},
                                             {"loopegg.original", result.at("original").dump()},
                                             {"loopegg.optimized", result.at("optimized").dump()},
                                             {"loopegg.loss", result.at("guard").at("loss").dump()},
                                             {"loopegg.plan", plan}};
    if (result.contains("speedup")) about["loopegg.speedup"] = result.at("speedup").dump();
    return about;
}

void write_network(Graph graph, const Weights& weights, const std::map<std::string, std::string>& about, const fs::path& out, Progress& progress) {
    graph.weights_file = "weights.safetensors";
    write_file(out / graph.weights_file, write_safetensors(without_int8_scales(weights)));  // network.json has the scales
    write_file(out / "model.json", write_model(graph));
    const OnnxFiles onnx = onnx_files(graph, weights, "model.onnx", {about});
    write_onnx(out / "model.onnx", onnx);
    for (const std::string& note : onnx.notes) progress.note(note);
    write_file(out / "network.py", network_py(graph, about));
}

void link_artifact(const fs::path& from, const fs::path& out) {
    const bool whole = fs::exists(from / "network.so");
    for (const auto& entry : fs::directory_iterator(from)) {
        const std::string name = entry.path().filename().string();
        if (name == "manifest.json") continue;  // the out folder has its own manifest
        const bool inside = name.starts_with("kernel") || name.ends_with(".c") || name.ends_with(".map") || (name.ends_with(".h") && name != "network.h");
        if (whole && inside) continue;  // it is in network.so
        if (fault_here(FaultPlace::write)) fail_system("write", out / name, ENOSPC);
        std::error_code failed;
        fs::create_hard_link(entry.path(), out / name, failed);
        if (failed) fs::copy_file(entry.path(), out / name, fs::copy_options::overwrite_existing);
    }
}

void write_out(const Answer& answer, const json& result) {
    const Run& run = answer.run;
    const Confirmed& confirmed = answer.confirmed;
    const fs::path& out = run.request.out;
    Graph original = run.read.network.graph;  // what the plan is applied to, for a check; its weights are those of the returned network where they have a place
    original.weights_file.clear();
    write_file(out / "original.json", write_model(original));
    const std::string plan = write_plan(confirmed.keep_original ? Plan{} : answer.chosen->plan);
    write_network(answer.returned().graph, answer.returned().weights, about_run(result, plan), out, run.progress);
    write_file(out / "plan.json", plan);
    link_artifact(confirmed.keep_original ? confirmed.original.files.folder : confirmed.optimized.files.folder, out);
    const json sequences = sequences_json(answer);
    write_file(out / "sequences.json", sequences.dump(1));
    std::string lines;
    for (const json& e : run.oracle->evidence()) lines += e.dump() + "\n";
    for (const NetworkRecord* n : {&confirmed.original, &confirmed.optimized})
        if (!n->rounding.is_null())
            lines += json{{"oracle", "rounding"}, {"network", n->files.folder.filename().string()}, {"evidence", n->rounding}}.dump() + "\n";
    write_file(out / "evidence.jsonl", lines);
    if (!answer.trainings().lines.empty()) write_file(out / "trainings.jsonl", answer.trainings().lines);
    write_file(out / "certificate.json", certificate_of(out, result, sequences, run.book).dump() + "\n");
}

}  // namespace loopegg
