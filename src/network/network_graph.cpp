#include "network/network_graph.hpp"

#include "nest/net/net.hpp"
#include "rules/limits.hpp"
#include "rules/unproved.hpp"

namespace loopegg {

NetworkGraph::NetworkGraph(const Graph& original, const RuleBook& book, NetworkGraphOptions options)
    : book_(book), options_(std::move(options)), term_(net_of(original, options_.kept)), graph_(EGraph::Options{.proofs = options_.proofs}) {
    NestAnalysis::Options facts;
    facts.proven = !uses_unproved_rules();
    facts.channels_step = options_.channels_step;
    facts_ = std::make_shared<NestAnalysis>(facts);
    graph_.attach(facts_);
    root_ = graph_.add(term_);
    graph_.rebuild();
}

RunReport NetworkGraph::grow(const Phase& phase) {
    return Runner(graph_, bind_rules(book_.rules_of(phase), Binding{facts_, options_.capacity})).run(limits_of(phase));
}

}  // namespace loopegg
