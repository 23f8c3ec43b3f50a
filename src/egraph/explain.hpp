// Answers why two terms are equal, from the reasons that an e-graph with proofs keeps.
#pragma once
#include "egraph/egraph.hpp"
#include "egraph/proof.hpp"

namespace loopegg {

// Throws UserError when a term is not represented, when the two are not equal, or when the e-graph keeps no proofs.
Proof explain(const EGraph& graph, const Term& from, const Term& to);

// The application behind a variant edge: one step of a neural rule, from the term that it matched to the variant.
Proof explain_edge(const EGraph& graph, const Edge& edge);

// Proves the same claim in fewer steps where that is easy to see: minimise() cuts detours, and replaces several steps by one application
// of a rule where that is possible. `work` bounds the pairs of terms that are compared.
Proof minimise(Proof proof, const EGraph& graph, std::size_t work = 200'000);

// The term that a node represents in proofs.
Term founding_term(const EGraph& graph, NodeId node);

}  // namespace loopegg
