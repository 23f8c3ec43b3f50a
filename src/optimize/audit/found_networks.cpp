#include "optimize/audit/found_networks.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "fisher/conditions.hpp"
#include "fisher/expected_loss.hpp"
#include "graph/flops.hpp"
#include "graph/model_json.hpp"
#include "graph/pytorch/network_py.hpp"
#include "nest/plan/plan.hpp"

namespace loopegg {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

void check_finalist(const fs::path& folder, const json& row, const Graph& graph, std::vector<std::string>& faults) {
    const std::string name = row.at("finalist");
    if (name.empty() || fs::path(name).filename() != name || name == "..") return faults.push_back("result.json: '" + name + "' is not the name of a finalist");
    const fs::path place = folder / "finalists" / name;
    const std::string shown = "finalists/" + name;
    if (!fs::exists(place)) return faults.push_back(shown + ": it is gone");
    if (json::parse(read_file(place / "plan.json")) != row.at("plan")) faults.push_back(shown + "/plan.json: it is not the plan of result.json");
    if (text_of(read_model(place / "model.json")) != text_of(graph)) faults.push_back(shown + "/model.json: it is not the network of its plan");
    if (read_file(place / "network.py") != network_py(graph)) faults.push_back(shown + "/network.py: it is not the network of its plan");
}

}  // namespace

std::vector<NamedNetwork> check_named_networks(const fs::path& folder, const json& result, const Graph& original, const NamedRules& rules,
                                               std::vector<std::string>& faults) {
    std::vector<NamedNetwork> all;
    for (const json& row : result.at("networks")) {
        const std::string name = row.at("finalist");
        const Graph graph = apply_plan(original, read_plan(read_json(make_source("the plan of '" + name + "'", row.at("plan").dump()))), rules);
        if (row.at("macs") != macs(graph) || row.at("parameters") != parameters(graph))
            faults.push_back("result.json: parameters or MACs of '" + name + "' are not those of its plan");
        if (row.at("chosen").get<bool>() && result.at("returned") == "optimized" && row.at("plan") != json::parse(read_file(folder / "plan.json")))
            faults.push_back("result.json: '" + name + "' was chosen, and plan.json is another");
        check_finalist(folder, row, graph, faults);
        all.push_back({name, graph});
    }
    return all;
}

void check_guard(const json& guard, const json& row, std::vector<std::string>& faults) {
    const auto same = [&](const char* said, const json& shown) {
        if (guard.contains(said) != !shown.is_null() || (guard.contains(said) && guard.at(said) != shown))
            faults.push_back(fmt::format("result.json: the guard's '{}' is not that of its evidence", said));
    };
    same("threshold", row.value("capacity", json())), same("measures", row.at("measures"));
    same("seeds", row.at("seeds").is_array() ? json(row.at("seeds").size()) : row.at("seeds"));
    same("loss", row.at("loss"));
}

void check_sizes_said(const json& row, const Graph& original, const Graph& network, OracleOptions options, std::vector<std::string>& faults) {
    const Graph one[]{network};
    const std::unique_ptr<Oracle> oracle = make_oracle(std::move(options));
    const auto wrong = [&](const std::string& what) { faults.push_back("evidence.jsonl: " + what + " of '" + row.at("variant_key").get<std::string>() + "'"); };
    const ExpectedLoss loss = oracle->losses(original, one).front();
    const json& said = row.at("loss");
    if (!near(said.at("points"), loss.points, 1e-6) || !near(said.at("low"), loss.low, 1e-6) || !near(said.at("high"), loss.high, 1e-6))
        wrong("the expected loss is not that of the sizes");
    const std::string words = fmt::format("{:.2f} points ({:.2f} to {:.2f})", loss.points, loss.low, loss.high);
    for (const json& m : row.at("measures"))
        if (condition_of(m).kind().is_loss && m.value("by", "") == "sizes" && m.value("why", words).find(words) == std::string::npos)
            wrong("the words are not those of the figures");
    if (!near(row.at("kept"), kept_at_loss(loss.points), 1e-6)) wrong("the loss does not belong to what is kept");
    for (const json& again : oracle->judge_by_size(original, one, conditions_in(row)).front().evidence.at("measures"))
        for (const json& m : row.at("measures"))
            if (condition_of(m) == condition_of(again) && m.contains("value") && !near(m.at("value"), again.at("value"), 1e-6))
                wrong(fmt::format("the sizes do not give the value of {}", again.at("measure").get<std::string>()));
}

bool answers_by_its_figures(const json& row) {
    const bool broken = row.at("why").get<std::string>().ends_with(": never admitted");
    bool all = !broken;
    for (const json& m : row.at("measures")) {
        const bool holds = m.contains("value") && condition_of(m).holds(m.at("value"));
        if (m.at("holds") != holds) return false;
        all &= holds;
        const std::string words = m.value("why", ""), &why = row.at("why").get_ref<const std::string&>();
        if (!broken && m.contains("value") && (holds ? row.at("allowed").get<bool>() : true) && why.find(words) == std::string::npos) return false;
    }
    return row.at("allowed") == all;
}

std::vector<MeasureCondition> conditions_in(const json& row) {
    std::vector<MeasureCondition> all;
    for (const json& m : row.at("measures")) all.push_back(condition_of(m));
    return all;
}

}  // namespace loopegg
