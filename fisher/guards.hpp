// Guards: from the measures of a variant beside its original to one number, the share of capacity that is kept.
//
// A guard says what it needs to see, and computes `kept` from all seeds together (1 where nothing is lost, less where more is lost). It admits a
// variant that keeps at least its threshold. What it computed on the way goes into the evidence.
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

// One seed of a comparison: same batch, shared weights.
struct ScoredPair {
    Measurement original, variant;
};

struct Kept {
    double value = 0;
    nlohmann::json parts = nlohmann::json::object();  // what it was made of, by name
    std::optional<ExpectedLoss> loss{};               // where the guard speaks in points of accuracy
};

struct CapacityGuard {
    std::string_view name, summary;
    Wanted wanted;
    double capacity;  // the default threshold
    double spread;    // of `kept` from seed to seed, relative, as seen on trained networks' plans (docs/explanation/guards.md)
    Kept (*kept)(std::span<const ScoredPair> seeds);
    double (*kept_by_size)(const Measurement& original, const Measurement& variant) = nullptr;        // never less than `kept`; null where sizes tell nothing
    ExpectedLoss (*loss_by_size)(const Measurement& original, const Measurement& variant) = nullptr;  // what sizes say of the loss; null: nothing
};

const std::vector<CapacityGuard>& guards();
std::vector<std::string> guard_names();
const CapacityGuard& find_guard(std::string_view name);  // throws UsageError with 'did you mean'
constexpr std::string_view default_guard = "expected-loss";

}  // namespace loopegg
