// What a guard says of whole networks, in points of accuracy.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "base/verdict.hpp"
#include "graph/graph.hpp"
#include "rules/capacity.hpp"

namespace loopegg {

// By how much the accuracy of a network, trained, is expected to be below the original's.
struct PredictedLoss {
    double points = 0, low = 0, high = 0;
};

// A guard that predicts losses says so in its evidence ("loss": {"points", "low", "high"}). Of another one, the capacity that it finds kept stands
// behind it: half of the capacity is about 0.8 points, as what was found at that and trained lost (docs/optimize.md).
PredictedLoss predicted_loss(const Verdict& verdict);

struct NetworkVerdict {
    Verdict verdict;
    PredictedLoss loss;
    bool allowed = true;
    double excess = 0;   // how far beyond what is allowed, as a part of it; at most 0 where it is allowed
};

class NetworkJudge {
public:
    // `max_loss`: in points, instead of the guard's own threshold.
    NetworkJudge(CapacityOracle& oracle, const Graph& original, std::optional<double> max_loss) : oracle_(oracle), original_(original), max_loss_(max_loss) {}

    std::vector<NetworkVerdict> judge(std::span<const Graph> networks);
    NetworkVerdict read(Verdict verdict) const;
    std::int64_t asked() const { return asked_; }

private:
    CapacityOracle& oracle_;
    const Graph& original_;
    std::optional<double> max_loss_;
    std::int64_t asked_ = 0;
};

// The guard as the search within one network made from the original sees it: verdicts are on whole networks beside the original, and what is
// kept is told beside that network, so that what its sites lose adds up. With `max_loss`, that decides what is allowed.
class BesideOriginal final : public CapacityOracle {
public:
    BesideOriginal(CapacityOracle& oracle, const Graph& original, double kept_by_network, std::optional<double> max_loss)
        : oracle_(oracle), original_(original), kept_(kept_by_network), max_loss_(max_loss) {}

    std::vector<Verdict> judge(const Graph& network, std::span<const Graph> variants) override;
    std::vector<double> kept_by_size(const Graph& network, std::span<const Graph> variants) override;

private:
    CapacityOracle& oracle_;
    const Graph& original_;
    double kept_;
    std::optional<double> max_loss_;
};

}  // namespace loopegg
