#include "optimize/search/application_guard.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "nest/net/graph_of_net.hpp"
#include "nest/net/net.hpp"

namespace loopegg {
namespace {

std::string key_of(const std::string& rule, const ChosenValues& values, const std::vector<std::string>& sites) {
    std::string key = rule;
    for (const auto& [variable, value] : values) key += " " + variable + "=" + to_string(value);
    return key + " at " + join(sites, " ");
}

const Term* part_at(const Term& term, const TreePath& path) {
    const Term* t = &term;
    for (std::uint32_t i : path) {
        if (i >= t->size()) return nullptr;
        t = &(*t)[i];
    }
    return t;
}

bool asks_guard(const GuardRecord& record) { return record.guard.starts_with("(capacity"); }

}  // namespace

bool ApplicationGuard::ask(std::vector<NetStep>& steps, const Term& original) {
    std::vector<std::pair<std::string, Graph>> questions;
    for (const NetStep& step : steps) {
        const Term* here = step.neural ? part_at(original, step.in_original) : nullptr;
        const std::string key = key_of(step.rule, step.with, step.inside);
        if (!here || known_.contains(key)) continue;
        const auto made = rewriter_.apply(step.rule, *here, step.with);
        if (!made) continue;  // the rule applies only after others: the guard judges the whole network
        try {
            questions.emplace_back(key, graph_of(with(original, step.in_original, *made), run_.read.network.graph));
            known_[key] = {};
        } catch (const UserError& e) {
            known_[key] = Verdict{false, "by itself it makes no network: " + e.diagnostics()[0].message, {}};
            refused_.insert(key), ++rejected_;
        }
    }
    std::vector<Graph> networks;
    for (auto& [key, graph] : questions) networks.push_back(std::move(graph));
    const std::vector<NetworkVerdict> verdicts = judge_.judge_by_size(networks);
    for (std::size_t i = 0; i < questions.size(); ++i) {
        known_[questions[i].first] = verdicts[i].verdict;
        ++asked_;
        if (!verdicts[i].allowed) refused_.insert(questions[i].first), ++rejected_;
    }
    bool allowed = true;
    for (NetStep& step : steps) {
        const std::string key = key_of(step.rule, step.with, step.inside);
        const auto verdict = known_.find(key);
        if (!step.neural || verdict == known_.end()) continue;
        allowed &= !refused_.contains(key);
        for (GuardRecord& record : step.guards)
            if (asks_guard(record)) record.verdict = verdict->second;
    }
    return allowed;
}

bool ApplicationGuard::refused(const Edge& edge, const std::vector<std::string>& sites) const {
    if (refused_.empty()) return false;
    const Rewrite* rule = rewriter_.find(edge.rule.text());
    return rule && refused_.contains(key_of(rule->name, chosen_values(*rule, edge, graph_), sites));
}

}  // namespace loopegg
