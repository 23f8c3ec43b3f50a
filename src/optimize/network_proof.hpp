// A proof, over the term of the whole, of how a network came of the one that was read: one application of a rule for each step of its shape.
#pragma once
#include <vector>

#include <nlohmann/json.hpp>

#include "base/verdict.hpp"
#include "optimize/shape_space.hpp"
#include "rules/rule.hpp"

namespace loopegg {

// {"original", "chosen": NET terms, "proofs": [...], "steps": [{"rule", "site", "with"}]}. The rules are those of the book, found by name; `verdict` is what
// the guard said of the network that all of them make. Steps that the rules do not say (a network with several inputs) are in "unproven", by name.
nlohmann::json prove_shape(const Graph& original, const ShapeSpace& space, const NetworkShape& shape, const RuleBook& book, const Verdict& verdict);

// What is wrong with such a proof; empty where it holds: every step is one of a rule of the book, the chain goes from the network to the chosen one, and
// what is left of its sites are the nests that the sites of the run start from.
std::string network_fault(const nlohmann::json& network, const nlohmann::json& sites, const RuleBook& book, std::size_t& steps);

}  // namespace loopegg
