// What a guard says of whole networks, in points of accuracy.
#pragma once
#include <span>
#include <vector>

#include "base/verdict.hpp"
#include "fisher/expected_loss.hpp"
#include "graph/graph.hpp"
#include "rules/capacity.hpp"

namespace loopegg {

// What a verdict says of the loss. A guard that predicts losses puts the loss into its evidence ("loss": {"points", "low", "high"}). For any other
// guard, the share of capacity that it finds kept stands for the loss.
ExpectedLoss loss_of(const Verdict& verdict);

struct NetworkVerdict {
    Verdict verdict;
    ExpectedLoss loss;
    bool allowed = true;
};

class NetworkJudge {
public:
    // `needed`: the share of capacity that has to be kept.
    NetworkJudge(CapacityOracle& oracle, const Graph& original, double needed) : oracle_(oracle), original_(original), needed_(needed) {}

    std::vector<NetworkVerdict> judge(std::span<const Graph> networks);
    // By sizes alone, where these tell the guard enough: many networks a second. Otherwise as judge() does.
    std::vector<NetworkVerdict> judge_by_size(std::span<const Graph> networks);
    std::int64_t asked() const { return asked_; }

private:
    CapacityOracle& oracle_;
    const Graph& original_;
    double needed_;
    std::int64_t asked_ = 0;
};

}  // namespace loopegg
