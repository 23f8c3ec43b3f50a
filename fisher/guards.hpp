// Guards turn the measures of a variant and its original into one number, the share of capacity that is kept.
//
// A guard says which measures it needs, and computes `kept` from all seeds together (1 where nothing is lost, less where more is lost). The guard admits a
// variant that keeps at least the threshold. What the guard computed on the way goes into the evidence.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "fisher/expected_loss.hpp"
#include "fisher/measures.hpp"

namespace loopegg {

// One seed of a comparison. Both networks see the same batch and share weights.
struct ScoredPair {
    MeasureInput original, variant;
};

struct Kept {
    double value = 0;
    nlohmann::json parts = nlohmann::json::object();  // what the value was computed from, by name
    std::optional<ExpectedLoss> loss{};               // where the guard speaks in points of accuracy
};

struct CapacityGuard {
    std::string_view name, summary;
    Wanted wanted;
    double capacity;  // the default threshold
    double spread;    // relative spread of `kept` from seed to seed, as seen on plans of trained networks (docs/explanation/guards.md)
    Kept (*kept)(std::span<const ScoredPair> seeds);
    double (*kept_by_size)(const MeasureInput& original, const MeasureInput& variant) = nullptr;        // never less than `kept`; null where sizes tell nothing
    ExpectedLoss (*loss_by_size)(const MeasureInput& original, const MeasureInput& variant) = nullptr;  // what sizes say of the loss; null: nothing
};

const std::vector<CapacityGuard>& guards();
std::vector<std::string> guard_names();
const CapacityGuard& find_guard(std::string_view name);  // throws UsageError with 'did you mean'
constexpr std::string_view default_guard = "expected-loss";

}  // namespace loopegg
