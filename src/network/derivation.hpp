// How a network of the front was made from the original, step by step.
#pragma once
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "nest/plan/derive_plan.hpp"
#include "network/front.hpp"
#include "rewrite/net_rewriter.hpp"

namespace loopegg {

// How the nest of one site was restricted, where rules over single nests did that.
struct NestDerivation {
    Term from, to;
    std::vector<DerivationStep> steps;
    std::vector<nlohmann::json> proofs;      // what the steps were read from, in order (egraph/proof.hpp)
    std::map<std::size_t, Verdict> asked{};  // by neural step: what its rule asks of the site alone, where that was asked
};

struct Derivation {
    Term from, to;               // from the original network to the one whose layers have their widths, before the nests of single sites change
    std::vector<NetStep> steps;  // neural ones first, then exact ones
    std::map<std::string, NestDerivation> nests;  // by site
};

// Throws InternalFault where the steps do not lead to the network.
Derivation derive(NetworkGraph& network, const RuleBook& book, NetRewriter& rewriter, const FrontPoint& point);

// The network with other nests at these sites.
Term with_nests(const Term& net, const std::map<std::string, Term>& nests);

// The sites of a term, in its order, also those that are left out.
std::vector<std::string> site_names(const Term& net);

// What the variables of `:for` represented when the rule made the edge.
ChosenValues chosen_values(const Rewrite& rule, const Edge& edge, const EGraph& graph);

// {"rule", "at", "with"} of each step, for an independent checker; terms as s-expressions.
nlohmann::json to_json(const std::vector<NetStep>& steps);

}  // namespace loopegg
