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
    double needed = 0;  // the share of capacity that has to be kept
    double excess = 0;  // loss beyond what is allowed, as a share of what is allowed; at most 0 where the network is allowed
};

double excess_of(double kept, double needed);

class NetworkJudge {
public:
    NetworkJudge(CapacityOracle& oracle, const Graph& original) : oracle_(oracle), original_(original) {}

    std::vector<NetworkVerdict> judge(std::span<const Graph> networks);
    // What sizes alone leave of the capacity (CapacityOracle::kept_by_size), without a verdict: many networks a second. Empty where sizes tell nothing.
    std::vector<double> kept_by_size(std::span<const Graph> networks) { return oracle_.kept_by_size(original_, networks); }
    std::int64_t asked() const { return asked_; }

private:
    CapacityOracle& oracle_;
    const Graph& original_;
    std::int64_t asked_ = 0;
};

// The guard as the search over the sites of one network sees it, where that network was made from the original. Verdicts compare whole networks with the
// original. The kept share is relative to that network, so that the losses of its sites add up.
class BesideOriginal final : public CapacityOracle {
public:
    BesideOriginal(CapacityOracle& oracle, const Graph& original, double kept_by_network) : oracle_(oracle), original_(original), kept_(kept_by_network) {}

    std::vector<Verdict> judge(const Graph& network, std::span<const Graph> variants) override;
    std::vector<double> kept_by_size(const Graph& network, std::span<const Graph> variants) override;

private:
    CapacityOracle& oracle_;
    const Graph& original_;
    double kept_;
};

}  // namespace loopegg
