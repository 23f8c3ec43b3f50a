// A proof, over the term of the whole network, of how the chosen network was made from the network that was read: one rule application for each step of
// the shape.
#pragma once
#include <vector>

#include <nlohmann/json.hpp>

#include "base/verdict.hpp"
#include "optimize/shape_space.hpp"
#include "rules/rule.hpp"

namespace loopegg {

// {"original", "chosen": NET terms, "proofs": [...], "steps": [{"rule", "site", "with"}]}. The rules are those of the book, found by name; `verdict` is what
// the guard said of the network that all steps make. Steps that the rules cannot express (in a network with several inputs) are in "unproven", by name.
nlohmann::json prove_shape(const Graph& original, const ShapeSpace& space, const NetworkShape& shape, const RuleBook& book, const Verdict& verdict);

// What is wrong with such a proof; empty where the proof holds. In a proof that holds, every step applies a rule of the book, the chain goes from the
// original network to the chosen one, and the sites that are left have the nests that the sites of the run start from.
std::string network_fault(const nlohmann::json& network, const nlohmann::json& sites, const RuleBook& book, std::size_t& steps);

}  // namespace loopegg
