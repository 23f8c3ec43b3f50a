#include "optimize/search/application_guard.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "nest/net/net.hpp"

namespace loopegg {
namespace {

std::string key_of(const std::string& rule, const ChosenValues& values, const std::vector<std::string>& sites) {
    std::string key = rule;
    for (const auto& [variable, value] : values) key += " " + variable + "=" + to_string(value);
    return key + " at " + join(sites, " ");
}

// What a guard of a rule asked, of all that was asked about the application.
Verdict answer_to(const std::string& guard, const Verdict& all) {
    if (guard == "(capacity)" || !all.evidence.contains("measures")) return all;
    for (const nlohmann::json& row : all.evidence.at("measures"))
        if (to_string(condition_of(row)) == guard) return {row.at("holds").get<bool>(), row.value("why", all.why), all.evidence};
    return all;
}

}  // namespace

bool ApplicationGuard::ask(std::vector<NetStep>& steps, const Term& original) {
    std::map<std::string, std::vector<std::pair<Key, Graph>>> questions;  // by rule
    for (const NetStep& step : steps) {
        const Term* here = step.neural ? part_at(original, step.in_original) : nullptr;
        const std::string key = key_of(step.rule, step.with, step.inside);
        if (!here || known_.contains(key)) continue;
        const auto made = rewriter_.apply(step.rule, *here, step.with);
        if (!made) continue;  // the rule applies only after others: the guard judges the whole network
        try {
            questions[step.rule].emplace_back(key, graph_of(with(original, step.in_original, *made), run_.read.network.graph));
            known_[key] = {};
        } catch (const UserError& e) {
            known_[key] = Verdict{false, "by itself it makes no network: " + e.diagnostics()[0].message, {}};
            refused_.insert(key), ++rejected_;
        }
    }
    for (const auto& [rule, about] : questions) ask_about(rule, about);
    bool allowed = true;
    for (NetStep& step : steps) {
        const std::string key = key_of(step.rule, step.with, step.inside);
        const auto verdict = known_.find(key);
        if (!step.neural || verdict == known_.end()) continue;
        allowed &= !refused_.contains(key);
        for (GuardRecord& record : step.guards)
            if (asks_measure(record.guard)) record.verdict = answer_to(record.guard, verdict->second);
    }
    return allowed;
}

std::vector<std::string> ApplicationGuard::ask(std::map<std::string, NestDerivation>& nests, const Term& original) {
    std::map<std::string, Term> whole;
    for (const NetLayer& layer : layers_of(original)) whole[layer.site] = layer.nest;
    std::vector<std::string> refused;
    for (auto& [site, nest] : nests) {
        if (whole[site] != nest.from) continue;
        bool allowed = true;
        for (std::size_t i = 0; i < nest.steps.size(); ++i) {
            const DerivationStep& step = nest.steps[i];
            if (!step.neural) continue;
            const std::string key = step.rule + " makes " + to_string(step.after) + " at " + site;
            if (!known_.contains(key)) ask_about(step.rule, {{key, graph_of(with_nests(original, {{site, step.after}}), run_.read.network.graph)}});
            nest.asked[i] = known_[key];
            allowed &= !refused_.contains(key);
        }
        if (!allowed) refused.push_back(site);
    }
    return refused;
}

std::vector<MeasureCondition> ApplicationGuard::conditions_of(const std::string& name) const {
    const Rule* rule = run_.book.find_rule(name);
    require(rule != nullptr, "a step is of a rule of the run");
    return conditions_of_step(*rule, run_.conditions);
}

void ApplicationGuard::ask_about(const std::string& rule, const std::vector<std::pair<Key, Graph>>& questions) {
    std::vector<Graph> networks;
    for (const auto& [key, graph] : questions) networks.push_back(graph);
    const std::vector<NetworkVerdict> verdicts = judge_.judge_step(networks, conditions_of(rule));
    for (std::size_t i = 0; i < questions.size(); ++i) {
        known_[questions[i].first] = verdicts[i].verdict;
        ++asked_;
        if (!verdicts[i].allowed) refused_.insert(questions[i].first), ++rejected_;
    }
}

bool ApplicationGuard::refused(const Edge& edge, const std::vector<std::string>& sites) const {
    if (refused_.empty()) return false;
    const Rewrite* rule = rewriter_.find(edge.rule.text());
    return rule && refused_.contains(key_of(rule->name, chosen_values(*rule, edge, graph_), sites));
}

}  // namespace loopegg
