// The capacity oracle judges variants of a network by a guard, on several seeds, with evidence.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/hash.hpp"
#include "fisher/data.hpp"
#include "fisher/guards.hpp"
#include "fisher/taught_loss.hpp"
#include "rules/capacity.hpp"
#include "store/address.hpp"

namespace loopegg {

struct OracleOptions {
    std::string guard{default_guard};
    std::optional<double> capacity{};  // the threshold; none: the guard's own
    std::string data{};                // as load_batches reads it
    std::int64_t batch = 8;            // images of each seed; seeds differ far more by their weights than by how many images they see
    int seeds = 3;
    bool early_stop = true;  // use fewer seeds when the first ones decide the answer
    std::uint64_t seed = 0;  // draws batches and weights
    int threads = 0;
    bool double_precision = false;               // 32-bit floats move a layer's score by up to a part in a thousand, far less than seeds do
    const Weights* trained = nullptr;            // null: each seed draws its own weights
    std::shared_ptr<const TaughtLoss> taught{};  // what trainings of other networks taught, for a guard that speaks in points; null: nothing
    StoreAddress store{};                        // empty: in memory only
    std::shared_ptr<Scorer> scorer{};  // shares passes with others; made for the same original, data, seeds and weights; null: the oracle makes its own
    std::function<void(std::int64_t done, std::int64_t all)> progress{};
};

struct OracleCounts {
    std::int64_t asked = 0, allowed = 0, from_store = 0, passes = 0;  // passes: runs of a network, one for each seed
    double seconds = 0;
};

class Oracle : public CapacityOracle {
public:
    virtual OracleCounts counts() const = 0;
    // The evidence of every verdict that this oracle gave, each once, in the order of the questions.
    virtual std::vector<nlohmann::json> evidence() = 0;
};

// Throws UserError or UsageError for options that make no sense. LibTorch is loaded with the first question.
std::unique_ptr<Oracle> make_oracle(OracleOptions options);

// The version of the oracle's computation. A change of the computation raises this number, and older evidence is then not found any more.
constexpr int oracle_version = 9;

// Two networks with the same key are the same to the oracle.
Hash128 graph_key(const Graph& graph);

}  // namespace loopegg
