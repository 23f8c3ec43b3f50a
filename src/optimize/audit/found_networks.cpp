#include "optimize/audit/found_networks.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "fisher/expected_loss.hpp"
#include "fisher/guards.hpp"
#include "graph/flops.hpp"
#include "graph/model_json.hpp"
#include "graph/pytorch/network_py.hpp"
#include "nest/plan/plan.hpp"
#include "optimize/audit/compare.hpp"

namespace loopegg {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

void check_finalist(const fs::path& folder, const json& row, const Graph& graph, std::vector<std::string>& faults) {
    const std::string name = row.at("finalist");
    if (name.empty() || fs::path(name).filename() != name || name == "..") return faults.push_back("result.json: '" + name + "' is no name of a finalist");
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
    same("threshold", row.at("capacity")), same("needed", row.at("capacity"));
    same("low", row.value("low", json())), same("high", row.value("high", json()));
    same("seeds", row.at("seeds").is_array() ? json(row.at("seeds").size()) : row.at("seeds"));
    if (row.contains("loss")) same("loss", row.at("loss"));
}

void check_sizes_said(const json& row, const Graph& original, const Graph& network, OracleOptions options, std::vector<std::string>& faults) {
    if (!row.contains("kept") || !row.contains("kept_by_size")) return;
    const double kept = row.at("kept"), by_size = row.at("kept_by_size");
    const Graph one[]{network};
    const std::vector<double> wanted = make_oracle(std::move(options))->kept_by_size(original, one);
    const auto wrong = [&](const std::string& what) { faults.push_back("evidence.jsonl: " + what + " of '" + row.at("variant_key").get<std::string>() + "'"); };
    if (!wanted.empty() && !near(wanted[0], by_size, 1e-6)) wrong("the sizes do not say what the row says");
    if (row.at("oracle") == default_guard && !near(kept, by_size, 1e-6)) wrong("the guard goes by sizes, and says something else");
    if (!row.contains("loss")) return;
    const json& loss = row.at("loss");
    if (!near(kept_at_loss(loss.at("points")), kept, 1e-6)) wrong("the loss does not belong to what is kept");
    const std::string words =
        fmt::format("{:.2f} points ({:.2f} to {:.2f})", loss.at("points").get<double>(), loss.at("low").get<double>(), loss.at("high").get<double>());
    if (row.at("why").get<std::string>().find(words) == std::string::npos) wrong("the words are not those of the figures");
}

}  // namespace loopegg
