// Recomputes what a run says of the networks that it found: their sizes, the files of the finalists, and what the guard said of them.
#pragma once
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "fisher/oracle.hpp"
#include "graph/graph.hpp"
#include "graph/model_json.hpp"
#include "nest/plan/apply_plan.hpp"

namespace loopegg {

// A network that result.json names, as its plan makes it from the original.
struct NamedNetwork {
    std::string name;
    Graph graph;
};

// Each function adds to `faults` the file that is wrong, and what is wrong with it.
std::vector<NamedNetwork> check_named_networks(const std::filesystem::path& folder, const nlohmann::json& result, const Graph& original,
                                               const NamedRules& rules, std::vector<std::string>& faults);

// `guard` is result.json's, `row` the evidence about the network that was returned.
void check_guard(const nlohmann::json& guard, const nlohmann::json& row, std::vector<std::string>& faults);

// A row about `network`: what the guard says of its sizes is computed again, which needs no training data. `options` are those of the row.
void check_sizes_said(const nlohmann::json& row, const Graph& original, const Graph& network, OracleOptions options, std::vector<std::string>& faults);

// Whether the verdict in a row is what its own figures say.
bool answers_by_its_figures(const nlohmann::json& row);

// The conditions that a row answers.
std::vector<MeasureCondition> conditions_in(const nlohmann::json& row);

// How an audit compares figures and networks.

// Figures that differ by rounding alone: by `part` of the larger one.
inline bool near(double a, double b, double part = 1e-6) { return std::abs(a - b) <= part * std::max({std::abs(a), std::abs(b), 1e-12}); }

// A network as a file says it, wherever its weights are.
inline std::string text_of(Graph graph) {
    graph.weights_file.clear();
    return write_model(graph);
}

}  // namespace loopegg
