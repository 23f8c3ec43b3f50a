// What each measure that rules may name (rules/measure.hpp) says of a variant and its original.
//
// A row says which scores it needs, and compares both networks over all seeds together. What it computed on the way goes into the evidence.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "fisher/expected_loss.hpp"
#include "fisher/measures.hpp"
#include "rules/measure.hpp"

namespace loopegg {

// One seed of a comparison. Both networks see the same batch and share weights.
struct ScoredPair {
    MeasureInput original, variant;
};

struct Compared {
    double value = 0;                                 // what a condition compares with its threshold
    nlohmann::json parts = nlohmann::json::object();  // what the value was computed from, by name
};

struct ComparedMeasure {
    std::string_view name;
    MeasureSet wanted;
    double spread;  // relative, from seed to seed, as seen on plans of trained networks (docs/explanation/guards.md); infinite: not known
    std::function<Compared(std::span<const ScoredPair> seeds)> compare;
    // The value itself for a measure that is a formula of sizes, else never less than it; empty where sizes contribute nothing.
    std::function<double(const MeasureInput& original, const MeasureInput& variant)> by_size{};
};

const std::vector<ComparedMeasure>& compared_measures();
const ComparedMeasure& compared_measure(std::string_view name);

// A condition as evidence writes it: {"measure", "comparison", "threshold"}. Throws UserError for one that no rule could say.
nlohmann::json to_json(const MeasureCondition& condition);
MeasureCondition condition_of(const nlohmann::json& row);

constexpr std::string_view default_measure = "expected-loss";
constexpr double default_points = 1;  // that a network may be expected to lose where nobody says more

// The points of accuracy that these conditions allow to be lost; none where they say nothing of it.
std::optional<double> points_asked(std::span<const MeasureCondition> conditions);
// The same conditions, with so many points allowed.
std::vector<MeasureCondition> with_points(std::vector<MeasureCondition> conditions, double points);

}  // namespace loopegg
