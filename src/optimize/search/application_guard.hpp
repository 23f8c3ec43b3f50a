// Asks the guard about single applications of rules, when an extraction wants them: each by itself, on the original network.
#pragma once
#include <map>
#include <set>
#include <span>
#include <string>

#include "network/derivation.hpp"
#include "network/front.hpp"
#include "optimize/run/run.hpp"
#include "optimize/search/judge_networks.hpp"

namespace loopegg {

// The verdicts about an application, one of each condition on a measure that its rule names; (capacity) represents the conditions of the run. Applications
// of one rule with the same values, at the same sites, are one, whatever was changed around them.
// Where sizes are enough for the guard, no network is run.
class ApplicationGuard {
public:
    // `graph`: whose edges refused() is asked about.
    ApplicationGuard(const Run& run, NetworkJudge& judge, NetRewriter& rewriter, const EGraph& graph)
        : run_(run), judge_(judge), rewriter_(rewriter), graph_(graph) {}

    // Puts the verdicts into the neural steps, and answers whether all of them are allowed.
    bool ask(std::vector<NetStep>& steps, const Term& original);

    // Asks about each neural step over the nest of a single site: the original with this nest alone. A nest that is narrower than in the original is left to
    // the verdict about the whole network. Returns the sites whose nests are refused.
    std::vector<std::string> ask(std::map<std::string, NestDerivation>& nests, const Term& original);

    // Whether an application was refused, so that an extraction leaves its edge out.
    bool refused(const Edge& edge, const std::vector<std::string>& sites) const;

    // Asks again, because predictions have changed.
    void forget() { known_.clear(), refused_.clear(); }

    std::int64_t asked() const { return asked_; }
    std::int64_t rejected() const { return rejected_; }

private:
    using Key = std::string;
    const Run& run_;
    NetworkJudge& judge_;
    NetRewriter& rewriter_;
    const EGraph& graph_;
    void ask_about(const std::string& rule, const std::vector<std::pair<Key, Graph>>& questions);
    std::vector<MeasureCondition> conditions_of(const std::string& rule) const;
    std::map<Key, Verdict> known_;
    std::set<Key> refused_;
    std::int64_t asked_ = 0, rejected_ = 0;
};

}  // namespace loopegg
