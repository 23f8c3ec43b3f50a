// Writes the out folder: the returned network in every form that people use, how the network was made, and the evidence.
#include <cerrno>

#include <fmt/format.h>

#include "base/fault.hpp"
#include "base/files.hpp"
#include "base/system_words.hpp"
#include "graph/model_json.hpp"
#include "graph/onnx/onnx.hpp"
#include "graph/pytorch/network_py.hpp"
#include "graph/safetensors.hpp"
#include "nest/plan/derive_plan.hpp"
#include "optimize/about_run.hpp"
#include "optimize/exact_glob.hpp"
#include "optimize/guard_queue.hpp"
#include "optimize/named_sequences.hpp"
#include "optimize/stages.hpp"
#include "rewrite/plan_rules.hpp"

namespace loopegg {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;

json steps_json(const Variant& v) {
    json steps = json::array();
    for (const DerivationStep& s : v.steps) {
        json with = json::object();
        for (const auto& [name, value] : s.with) with[name] = to_string(value);
        steps.push_back(
            {{"rule", s.rule}, {"kind", s.neural ? "neural" : "exact"}, {"with", with}, {"before", to_string(s.before)}, {"after", to_string(s.after)}});
        if (s.backwards) steps.back()["backwards"] = true;
    }
    return steps;
}

json sequences_json(const Input& input, const Discovery& found, const std::vector<std::size_t>& variant) {
    json sites = json::array();
    for (std::size_t s = 0; s < input.sites.all.size(); ++s) {
        const Variant& v = found.variants[variant[s]];
        std::string key;
        for (const DerivationStep& step : v.steps) key += (key.empty() ? "" : " ") + step.rule;
        sites.push_back({{"name", input.sites.all[s].name},
                         {"sequence", sequence_name(input.sites, found, variant, s)},
                         {"key", key},
                         {"effect", domain_text(v.domain)},
                         {"steps", steps_json(v)},
                         {"original", to_string(input.sites.kinds[input.sites.all[s].kind].nest)},
                         {"chosen", to_string(v.nest)},
                         {"proofs", v.proofs}});
    }
    json all{{"sites", sites}};
    if (input.read) all["network"] = input.proof, all["network"]["plan"] = json::parse(write_plan(input.plan));
    return all;
}

// The plan by which 'loopegg apply' makes the same network from the original.
Plan plan_of(const Input& input, const Discovery& found, const std::vector<std::size_t>& variant, const NamedRules& rules) {
    Plan plan = input.plan;
    for (std::size_t s = 0; s < input.sites.all.size(); ++s) {
        const Node& node = *input.graph.find(input.sites.all[s].name);
        const Variant& v = found.variants[variant[s]];
        if (auto apply = applications_for(node, v.steps, v.domain, rules); !apply.empty()) plan.steps.push_back({exact_glob(node.name), std::move(apply)});
    }
    return plan;
}

void write_network(Graph graph, const Weights& weights, const std::map<std::string, std::string>& about, const fs::path& out, Progress& progress) {
    graph.weights_file = "weights.safetensors";
    write_file(out / graph.weights_file, write_safetensors(weights));
    write_file(out / "model.json", write_model(graph));
    const OnnxFiles onnx = onnx_files(graph, weights, "model.onnx", {about});
    write_onnx(out / "model.onnx", onnx);
    for (const std::string& note : onnx.notes) progress.note(note);
    write_file(out / "network.py", network_py(graph, about));
}

// Puts the compiled network into the out folder itself, too. It makes links, because weights are large.
void link_artifact(const fs::path& from, const fs::path& out) {
    const bool whole = fs::exists(from / "network.so");
    for (const auto& entry : fs::directory_iterator(from)) {
        const std::string name = entry.path().filename().string();
        if (name == "manifest.json") continue;  // the out folder has its own manifest
        const bool inside =
            name.starts_with("kernel") || name.ends_with(".c") || name.starts_with("loopegg_runtime") || (name.ends_with(".h") && name != "network.h");
        if (whole && inside) continue;  // it is in network.so
        if (fault_here(FaultPlace::write)) fail_system("write", out / name, ENOSPC);
        std::error_code failed;
        fs::create_hard_link(entry.path(), out / name, failed);
        if (failed) fs::copy_file(entry.path(), out / name, fs::copy_options::overwrite_existing);
    }
}

}  // namespace

void write_out(const OptimizeRequest& request, const Outcome& outcome, Oracle& oracle, const json& result, Progress& progress) {
    const auto& [input, found, tuning, selection, confirmed] = outcome;
    const std::vector<std::size_t> variant = returned_variants(input, selection, confirmed);
    const Input& read = input.as_read();
    const Graph& graph = confirmed.keep_original ? read.graph : selection.chosen.graph;
    Graph original = read.graph;  // what the plan is applied to, for a check; its weights are those of the returned network where they have a place
    original.weights_file.clear();
    write_file(request.out / "original.json", write_model(original));
    const json sequences = sequences_json(input, found, variant);
    const std::string plan = write_plan(confirmed.keep_original ? Plan{} : plan_of(input, found, variant, plan_rules(rules_file(request.rules))));
    write_network(graph, read.carried_to(graph, request.seed), about_run(result, plan), request.out, progress);
    write_file(request.out / "plan.json", plan);
    link_artifact(confirmed.keep_original ? confirmed.original.files.folder : confirmed.optimized.files.folder, request.out);
    write_file(request.out / "sequences.json", sequences.dump(1));
    std::string lines;
    for (const json& e : oracle.evidence()) lines += e.dump() + "\n";
    for (const NetworkRecord* n : {&confirmed.original, &confirmed.optimized})
        if (!n->rounding.is_null())
            lines += json{{"oracle", "rounding"}, {"network", n->files.folder.filename().string()}, {"evidence", n->rounding}}.dump() + "\n";
    write_file(request.out / "evidence.jsonl", lines);
    if (!read.trainings.lines.empty()) write_file(request.out / "trainings.jsonl", read.trainings.lines);
}

}  // namespace loopegg
