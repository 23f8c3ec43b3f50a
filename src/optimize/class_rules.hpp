// The rules that a class of architecture is searched with: the rules of sets that are meant for the class, without those that never paid off there.
#pragma once
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/architecture.hpp"
#include "optimize/passes.hpp"
#include "optimize/rule_counts.hpp"
#include "optimize/variant.hpp"
#include "rules/rule.hpp"

namespace loopegg {

struct PrunedRule {
    std::string rule, why;
};

struct ClassRules {
    std::string name;  // "residual", or "all" when nothing was left out on account of a class
    RuleBook book;     // with the rules that are left
    std::vector<PrunedRule> pruned;
    bool searches = true;                   // false: no neural rule is left, and there is nothing to discover
    std::map<std::string, double> asked{};  // how many questions each remaining rule asked the guard for a counted network, on average; no entry: not known
    double asked_by_all = 0;                // the same for all rules together
    std::set<std::string> paid{};           // neural sequences that the search looks for (paid_sequences.hpp); empty: the search looks for all
    std::set<std::string> uncounted{};      // rules that too few networks were counted with, and that are tried for that reason
};

// "auto" takes the class that classify_architecture finds, "all" takes every rule, and a name takes that class. Throws UserError with the known names
// otherwise.
std::string class_name(const std::string& asked, const Graph& graph);

// A set whose tags name classes serves these classes alone.
// A rule is judged once at least `enough_networks` networks of the class were counted with its text. These are left out:
//   - a rule that never changed an e-graph (it cannot fire);
//   - a rule of which no returned network has a step (it never paid), unless it makes something that a neural rule looks for;
//   - a neural rule that made fewer than 1 of every `least_share` neural steps that paid, because its variants are tuned wherever they fit;
//   - a sequence of neural rules that not more than half of the networks were returned with, because that may have been luck;
//   - a rule, or a value of its list (one number of groups), that stands only in such sequences.
// The sequences of `keep` ("group-axes ?g=2, split-loop") are searched for in any case, and their rules stay.
// The result names what is left out, with the reason.
constexpr std::int64_t enough_networks = 2;
constexpr std::int64_t least_share = 20;
constexpr std::int64_t enough_of(std::int64_t networks) { return std::max(enough_networks, networks / 2 + 1); }  // that a sequence must be in
PassOrder passes_named(const std::string& text);  // throws UserError for a text that is no pass order
ClassRules rules_for_class(const RuleBook& book, const Phase& phase, const std::string& name, const CountTable& counts, const std::set<std::string>& keep = {});
// Whether the search looks for a variant, so that it is worth tuning.
bool searched_for(const ClassRules& rules, const Variant& variant);

}  // namespace loopegg
