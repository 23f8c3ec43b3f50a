// Replays the steps that made a network from the original, on their terms.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/term.hpp"
#include "graph/graph.hpp"
#include "rules/rule.hpp"

namespace loopegg {

struct NetworkReplay {
    std::size_t steps = 0;
    std::string fault{};           // empty: the steps hold
    std::optional<Graph> graph{};  // of the term that they lead to
};

// `network`: sequences.json's "network". The term of `original` must be the one that the steps begin at. Each step must be an application of its rule in the
// book at its place: its left side matches, its guards hold, and its values are offered. Exact rules come from left to
// right. The last term must be the one that
// is claimed, topology and all.
NetworkReplay replay_network(const nlohmann::json& network, const Graph& original, const RuleBook& book);

// A neural step by itself on the original, and what was asked of it.
struct StepAlone {
    std::string rule;
    Graph network;
    std::vector<MeasureCondition> conditions;
    nlohmann::json measures;  // the rows of its evidence
    bool allowed = true, by_size = false;
};

// The steps of sequences.json, over the network and over single nests, whose evidence says what was asked of them by themselves.
std::vector<StepAlone> steps_alone(const nlohmann::json& sequences, const Graph& original, const RuleBook& book);

}  // namespace loopegg
