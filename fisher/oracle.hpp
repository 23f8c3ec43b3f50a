// The capacity oracle judges variants of a network by conditions on measures, on several seeds, with evidence.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/hash.hpp"
#include "fisher/calibrated_loss.hpp"
#include "fisher/conditions.hpp"
#include "fisher/data.hpp"
#include "rules/capacity.hpp"
#include "store/address.hpp"

namespace loopegg {

struct OracleOptions {
    std::vector<MeasureCondition> conditions{{std::string(default_measure), false, default_points}};  // of judge() without any
    std::string data{};                                                                               // as load_batches reads it
    std::int64_t batch = 8;  // images of each seed; seeds differ far more by their weights than by how many images they see
    int seeds = 3;
    bool early_stop = true;  // use fewer seeds when the first ones decide the answer
    std::uint64_t seed = 0;  // draws batches and weights
    int threads = 0;
    bool double_precision = false;                        // 32-bit floats move a layer's score by up to a part in a thousand, far less than seeds do
    const Weights* trained = nullptr;                     // null: each seed draws its own weights
    std::shared_ptr<const CalibratedLoss> calibration{};  // of the expected loss, on training runs of other networks; null: none
    StoreAddress store{};                                 // empty: in memory only
    std::shared_ptr<Scorer> scorer{};  // shares passes with others; made for the same original, data, seeds and weights; null: the oracle makes its own
    std::function<void(std::int64_t done, std::int64_t all)> progress{};
};

struct OracleCounts {
    std::int64_t asked = 0, allowed = 0, from_store = 0, passes = 0;  // passes: runs of a network, one for each seed
    double seconds = 0;
};

class Oracle : public CapacityOracle {
public:
    using CapacityOracle::judge;
    virtual std::vector<Verdict> judge(const Graph& original, std::span<const Graph> variants) = 0;
    // The points of accuracy that each variant is expected to lose, whether or not a condition asks. No network is run.
    virtual std::vector<ExpectedLoss> losses(const Graph& original, std::span<const Graph> variants) = 0;
    // Predictions follow these training runs from now on. The evidence of earlier verdicts is dropped, because they would be others now.
    virtual void calibrate(std::shared_ptr<const CalibratedLoss> calibration) = 0;
    virtual OracleCounts counts() const = 0;
    // The evidence of every verdict that this oracle gave, each once, in the order of the questions.
    virtual std::vector<nlohmann::json> evidence() = 0;
};

// Throws UserError or UsageError for options that make no sense. LibTorch is loaded with the first question.
std::unique_ptr<Oracle> make_oracle(OracleOptions options);

// The version of the oracle's computation. A change of the computation raises this number, and older evidence is then not found any more.
constexpr int oracle_version = 9;

// Whether both verdicts answer alike, and found every measure's value alike within this share of it.
bool says_the_same(const Verdict& a, const Verdict& b, double tolerance);

// Two networks with the same key are the same to the oracle.
Hash128 graph_key(const Graph& graph);

}  // namespace loopegg
