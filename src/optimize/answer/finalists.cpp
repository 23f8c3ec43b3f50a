#include "optimize/answer/finalists.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "fisher/conditions.hpp"
#include "graph/model_json.hpp"
#include "optimize/train/trainer.hpp"

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
    for (const FoundNetwork& t : found.timed) write_trainable(out / "finalists" / t.name, t.network.graph, trained ? &t.network.weights : nullptr, t.plan);
}

std::map<std::string, Trained> read_accuracies(const fs::path& file) {
    const JsonView all = read_json(read_source(file));
    if (!all.value().is_object()) all.fail(R"(expected an object such as {"original": 95.7, "front-1": [95.1, 95.3]})");
    std::map<std::string, Trained> out;
    for (const auto& [name, value] : all.members()) out[name] = read_trained(value);
    return out;
}

std::map<std::string, Trained> accuracies_of_run(const fs::path& out) {
    const json result = parse_json_file(out / "result.json");
    if (!result.contains("training"))
        throw UserError(Diagnostic{
            fmt::format("the run in '{}' trained no network", out.string()), {}, "give --accuracies, what the networks reached in your training runs"});
    std::map<std::string, Trained> all;
    all["original"].accuracies = result["training"].at("original").at("accuracies").get<std::vector<double>>();
    for (const json& n : result.at("networks"))
        if (n.contains("accuracies")) all[n.at("finalist")].accuracies = n.at("accuracies").get<std::vector<double>>();
    return all;
}

namespace {

constexpr double ninety_percent = 1.645;  // standard deviations on either side hold nine of ten

void set_trained(FinalistRow& row, const Trained& trained, const Trained& original) {
    const double lost = original.mean() - trained.mean();
    const double runs = 1 / static_cast<double>(trained.accuracies.size()) + 1 / static_cast<double>(original.accuracies.size());
    const double half = row.name == "original" ? 0 : ninety_percent * training_deviation * std::sqrt(runs);
    row.trained = trained, row.lost = lost, row.loss = {lost, lost - half, lost + half, {}};
}

}  // namespace

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
        choice.rows.push_back({"original", original_ms, 1, 0, {}, {}, {}});
        double baseline = original_ms;  // the original, interleaved with the finalists
        for (const json& n : result.at("networks")) {
            if (!n.contains("finalist") || !n.at("measured").get<bool>()) continue;
            baseline = n.contains("baseline_ms") ? n.at("baseline_ms") : n.at("beside_ms");  // the name before version 0.3
            const json& loss = n.contains("predicted") ? n.at("predicted") : n.at("loss");
            const double points = loss.at("points");
            choice.rows.push_back(
                {n.at("finalist"), n.at("latency_ms"), 1, points, {}, {}, {points, loss.value("low", points), loss.value("high", points), {}}});
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
        if (const auto it = accuracies.find(row.name); it != accuracies.end()) set_trained(row, it->second, original->second);
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
