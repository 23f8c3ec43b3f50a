#include "optimize/answer/finalists.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"
#include "fisher/conditions.hpp"
#include "graph/model_json.hpp"
#include "graph/pytorch/network_py.hpp"
#include "graph/safetensors.hpp"

namespace loopegg {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;

Trained read_trained(const JsonView& value) {
    Trained trained;
    const std::vector<JsonView> seeds = value.value().is_array() ? value.items() : std::vector{value};
    for (const JsonView& seed : seeds) {
        if (!seed.value().is_number() || !(seed.number() >= 0 && seed.number() <= 100))
            seed.fail(fmt::format("expected an accuracy in percent, 0 to 100, or a list of them, but found {}", seed.value().dump()));
        trained.accuracies.push_back(seed.number());
    }
    if (trained.accuracies.empty()) value.fail("expected at least one accuracy in the list");
    return trained;
}

}  // namespace

void write_finalists(const fs::path& out, const FoundNetworks& found, bool trained) {
    for (const FoundNetwork& t : found.timed) {
        const fs::path folder = out / "finalists" / t.name;
        fs::create_directories(folder);
        Graph graph = t.network.graph;
        graph.weights_file = trained ? "weights.safetensors" : "";
        if (trained) write_file(folder / graph.weights_file, write_safetensors(t.network.weights));
        write_file(folder / "plan.json", write_plan(t.plan));
        write_file(folder / "model.json", write_model(graph));
        write_file(folder / "network.py", network_py(graph));
    }
}

std::map<std::string, Trained> read_accuracies(const fs::path& file) {
    const JsonView all = read_json(read_source(file));
    if (!all.value().is_object()) all.fail(R"(expected an object such as {"original": 95.7, "front-1": [95.1, 95.3]})");
    std::map<std::string, Trained> out;
    for (const auto& [name, value] : all.members()) out[name] = read_trained(value);
    return out;
}

// What the run allowed to be lost.
double points_allowed(const json& guard) {
    if (guard.contains("conditions"))
        if (const auto points = points_asked(measure_conditions(guard.at("conditions").get<std::string>(), "result.json"))) return *points;
    return guard.contains("threshold") ? loss_at_kept(guard.at("threshold")) : default_points;  // before conditions had names
}

FinalistChoice choose_by_accuracy(const fs::path& out, const std::map<std::string, Trained>& accuracies, std::optional<double> max_loss) {
    const json result = parse_json_file(out / "result.json");
    FinalistChoice choice;
    try {
        choice.max_loss = max_loss ? *max_loss : points_allowed(result.at("guard"));
        const double original_ms = result.at("original").at("median_ms");
        choice.rows.push_back({"original", original_ms, 1, 0, {}, {}});
        double baseline = original_ms;  // the original, interleaved with the finalists
        for (const json& n : result.at("networks")) {
            if (!n.contains("finalist") || !n.at("measured").get<bool>()) continue;
            baseline = n.contains("baseline_ms") ? n.at("baseline_ms") : n.at("beside_ms");  // the name before version 0.3
            choice.rows.push_back({n.at("finalist"), n.at("latency_ms"), 1, n.at("loss").at("points"), {}, {}});
        }
        choice.rows.front().ms = baseline;
    } catch (const json::exception& e) {
        throw UserError(fmt::format("'{}' is not as docs/reference/formats.md says: {}", (out / "result.json").string(), e.what()));
    }
    if (choice.rows.size() == 1)
        throw UserError(fmt::format("'{}' has no finalists: a run of 'loopegg optimize' writes them where it searches whole networks", out.string()));
    std::vector<std::string> names;
    for (const FinalistRow& row : choice.rows) names.push_back(row.name);
    for (const auto& [name, trained] : accuracies)
        if (std::find(names.begin(), names.end(), name) == names.end())
            throw UserError(
                Diagnostic{fmt::format("'{}' is no finalist of '{}': expected {}", name, out.string(), join(names, ", ")), {}, did_you_mean(name, names)});
    const auto original = accuracies.find("original");
    if (original == accuracies.end()) throw UserError("the accuracy of 'original' is missing: losses are relative to it");

    for (FinalistRow& row : choice.rows) {
        row.speedup = choice.rows.front().ms / row.ms;
        if (const auto it = accuracies.find(row.name); it != accuracies.end()) row.trained = it->second, row.lost = original->second.mean() - it->second.mean();
    }
    std::stable_sort(choice.rows.begin() + 1, choice.rows.end(), [](const FinalistRow& a, const FinalistRow& b) { return a.ms < b.ms; });
    for (std::size_t i = 1; i < choice.rows.size() && !choice.chosen; ++i)
        if (choice.rows[i].lost && *choice.rows[i].lost <= choice.max_loss && choice.rows[i].speedup > 1) choice.chosen = i;
    return choice;
}

void append_trainings(const fs::path& file, const fs::path& out, const std::map<std::string, Trained>& accuracies) {
    std::string text = fs::exists(file) ? read_file(file) : std::string();
    const std::vector<std::string> lines = split(text, '\n');
    std::set<std::string> known(lines.begin(), lines.end());
    if (!text.empty() && text.back() != '\n') text += '\n';
    const std::string base = read_model(read_source(out / "original.json")).name;
    for (const auto& [name, trained] : accuracies) {
        const json plan = name == "original" ? json{{"steps", json::array()}} : parse_json_file(out / "finalists" / name / "plan.json");
        for (std::size_t seed = 0; seed < trained.accuracies.size(); ++seed) {
            const std::string line = json{{"base", base}, {"name", name}, {"seed", seed}, {"plan", plan}, {"accuracy", trained.accuracies[seed]}}.dump();
            if (known.insert(line).second) text += line + '\n';
        }
    }
    write_file(file, text);
}

}  // namespace loopegg
