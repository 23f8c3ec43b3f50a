// What the conditions of a run say of whole networks, and how many points of accuracy these are expected to lose.
#pragma once
#include <span>
#include <vector>

#include "base/verdict.hpp"
#include "fisher/oracle.hpp"
#include "graph/graph.hpp"

namespace loopegg {

// The loss in the evidence of a verdict ("loss": {"points", "low", "high"}).
ExpectedLoss loss_of(const Verdict& verdict);

struct NetworkVerdict {
    Verdict verdict;
    ExpectedLoss loss;
    bool allowed = true;
};

class NetworkJudge {
public:
    // `conditions`: of whole networks.
    NetworkJudge(Oracle& oracle, const Graph& original, std::span<const MeasureCondition> conditions)
        : oracle_(oracle), original_(original), conditions_(conditions) {}

    std::vector<NetworkVerdict> judge(std::span<const Graph> networks) { return judge(networks, conditions_); }
    std::vector<NetworkVerdict> judge(std::span<const Graph> networks, std::span<const MeasureCondition> conditions);
    // What sizes say, without running a network: many networks a second. Conditions that are no formulas of sizes are left open.
    std::vector<NetworkVerdict> judge_by_size(std::span<const Graph> networks);
    // By sizes alone where these answer all conditions, else as judge() does.
    std::vector<NetworkVerdict> judge_step(std::span<const Graph> networks, std::span<const MeasureCondition> conditions);
    std::int64_t asked() const { return asked_; }

private:
    Oracle& oracle_;
    const Graph& original_;
    std::span<const MeasureCondition> conditions_;
    std::int64_t asked_ = 0;
};

}  // namespace loopegg
