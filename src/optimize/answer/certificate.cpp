#include "optimize/answer/certificate.hpp"

#include <array>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "graph/model_json.hpp"
#include "nest/net/net.hpp"
#include "rules/measure.hpp"

namespace loopegg {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;

constexpr int format_version = 2;
constexpr std::array own_files{"original.json", "model.json", "plan.json", "weights.safetensors", "network.so", "network.json", "network.h", "weights.bin"};

// Each condition, and the value that was found. Values from sizes can be computed again by anybody.
json measured(const json& rows) {
    json out = json::array();
    for (const json& row : rows) out.push_back({row.at("measure"), row.at("comparison"), row.at("threshold"), row.value("value", json())});
    return out;
}

// What was asked of one neural step by itself; nothing, where the verdict about the whole network counts.
json judged(const json& step) {
    for (const json& g : step.at("guards"))
        if (asks_measure(g.at("guard").get<std::string>()) && g.at("evidence").is_object() && g.at("evidence").contains("measures"))
            return measured(g.at("evidence").at("measures"));
    return nullptr;
}

json steps_of(const json& network) {
    json steps = json::array();
    for (const json& s : network.at("steps")) {
        steps.push_back({{"rule", s.at("rule")}, {"neural", s.at("neural")}, {"at", s.at("at")}});
        if (s.contains("with")) steps.back()["with"] = s.at("with");
        if (s.at("neural").get<bool>()) steps.back()["judged"] = judged(s);
    }
    return steps;
}

// The sites whose nests have steps of their own.
json restricted_sites(const json& sequences) {
    json names = json::array();
    for (const json& site : sequences.at("sites"))
        if (!site.at("steps").empty()) names.push_back(site.at("name"));
    return names;
}

json rules_of(const json& steps, const RuleBook& book) {
    json rules = json::object();
    for (const json& s : steps) {
        const std::string name = s.at("rule");
        const Rule* rule = book.find_rule(name);
        require(rule != nullptr, "a step is of a rule of the run");
        rules[name] = {{"text", rule->text}, {"sha256", sha256_of(rule->text)}};
    }
    return rules;
}

json claims_of(const fs::path& folder, const json& result) {
    json claims;
    for (const auto& [to, from] : {std::pair{"original", "original"}, {"returned", "optimized"}})
        claims[to] = {{"macs", result.at(from).at("macs")}, {"parameters", result.at(from).at("parameters")}};
    const json& guard = result.at("guard");
    claims["loss"] = guard.at("loss");
    claims["loss"]["by"] = fs::exists(folder / "trainings.jsonl") ? "trainings" : "sizes";
    claims["measures"] = measured(guard.value("measures", json::array()));
    claims["errors"] = result.value("errors", json::object());
    return claims;
}

}  // namespace

json certified_files(const fs::path& folder, const json& result) {
    json files = json::object();
    for (const char* name : own_files)
        if (fs::exists(folder / name)) files[name] = sha256_of_file(folder / name);
    const std::string returned = result.at("returned");
    for (const auto& entry : fs::directory_iterator(folder / returned)) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with("kernel") || name == "network.c") files[returned + "/" + name] = sha256_of_file(entry.path());
    }
    return files;
}

json certificate_of(const fs::path& folder, const json& result, const json& sequences, const RuleBook& rules) {
    json network{{"steps", json::array()}};
    if (sequences.contains("network"))
        network = sequences.at("network");
    else
        network["original"] = network["chosen"] = to_string(net_of(read_model(folder / "original.json")));
    const json steps = steps_of(network);
    return {{"loopegg_certificate", format_version}, {"model", result.at("model")},
            {"original", network.at("original")},    {"steps", steps},
            {"final", network.at("chosen")},         {"nests", restricted_sites(sequences)},
            {"rules", rules_of(steps, rules)},       {"channels_multiple", network.value("channels_multiple", 1)},
            {"claims", claims_of(folder, result)},   {"files", certified_files(folder, result)}};
}

}  // namespace loopegg
