// The neural steps of a variant with the values that were chosen for them. What paid off for a class is counted in this unit.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "optimize/variant.hpp"
#include "rules/rule.hpp"

namespace loopegg {

// "bottleneck-axis ?k=4, group-axes ?g=8", with the values of lists that are written out in the rules. The steps are in alphabetical order, because
// one variant can be reached in several orders. Empty for an original.
std::string neural_sequence(const RuleBook& book, const Variant& variant);

// The names of the rules of a sequence, in its order.
std::vector<std::string> rules_in(const std::string& sequence);

// A sequence without the steps of exact rules, as neural_sequence would write it.
std::string neural_part(const RuleBook& book, const std::string& sequence);

// Whether a step of the rule stands in one of the sequences, with that value where `value` ("?g=8") is given.
bool in_sequences(const std::set<std::string>& sequences, const std::string& rule, const std::string& value = {});

}  // namespace loopegg
