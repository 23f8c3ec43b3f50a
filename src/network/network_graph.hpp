// The e-graph of one network: its term, grown by the rules of a phase. Variants of the network are reached over the edges of neural rules.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "egraph/egraph.hpp"
#include "egraph/runner.hpp"
#include "graph/graph.hpp"
#include "nest/term/facts.hpp"
#include "rules/rule.hpp"

namespace loopegg {

struct NetworkGraphOptions {
    std::vector<std::string> kept{};  // sites that stay as they are
    std::int64_t channels_step = 1;   // widths are multiples of this
    bool proofs = true;
    // Answers (capacity) for the applications of one iteration; empty: everything is allowed.
    std::function<std::vector<Verdict>(const EGraph&, std::span<const CapacityProposal>)> capacity{};
};

class NetworkGraph {
public:
    NetworkGraph(const Graph& original, const RuleBook& book, NetworkGraphOptions options);

    // Applies the rules of a phase until nothing changes or its limits are met.
    RunReport grow(const Phase& phase);

    const EGraph& graph() const { return graph_; }
    EGraph& graph() { return graph_; }
    const NestAnalysis& facts() const { return *facts_; }
    ClassId root() const { return graph_.find(root_); }
    const Term& term() const { return term_; }  // of the original network

private:
    const RuleBook& book_;
    NetworkGraphOptions options_;
    Term term_;
    EGraph graph_;
    std::shared_ptr<NestAnalysis> facts_;
    ClassId root_;
};

}  // namespace loopegg
