// The rules that a class of architecture is searched with: those whose sets are meant for it, without what never paid off there.
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
    std::string name;                 // "residual", or "all" when nothing was left out on account of a class
    RuleBook book;                    // with the rules that are left
    std::vector<PrunedRule> pruned;
    bool searches = true;             // false: no neural rule is left, and there is nothing to discover
    std::map<std::string, double> asked{};   // questions to the guard of each rule that is left, in a counted run on average; none: nobody knows
    double asked_by_all = 0;          // and of all rules
    std::set<std::string> paid{};     // neural sequences that the search is for (paid_sequences.hpp); none: for all
    std::set<std::string> uncounted{};   // rules that no counted run knew: they have their chance
};

// "auto": what the detector says; "all": every rule; or a class by name. UserError with the known names otherwise.
std::string class_name(const std::string& asked, const Graph& graph);

// A set whose tags name classes serves these classes alone. A rule is left out when at least `enough_runs` runs of the
// class were counted and it never changed an
// e-graph in them (it cannot fire), or no returned network has a step of it (it never paid) and it makes nothing that a
// neural rule looks for. A neural rule must
// have made one of `least_share` neural steps that paid, for its variants are tuned wherever they fit. What neural
// rules do together is held to more: a sequence that
// not more than half of the runs returned may have been luck, and is not searched for, nor a rule or a value of its
// list (one number of groups) that stands in no other.
constexpr std::int64_t enough_runs = 2;
constexpr std::int64_t least_share = 20;
constexpr std::int64_t enough_of(std::int64_t runs) { return std::max(enough_runs, runs / 2 + 1); }   // that a sequence must be in
PassOrder passes_named(const std::string& text);   // UserError for what is no pass order
ClassRules rules_for_class(const RuleBook& book, const Phase& phase, const std::string& name, const CountTable& counts);
// Whether a variant is what the search is for: worth being tuned.
bool searched_for(const ClassRules& rules, const Variant& variant);

}  // namespace loopegg
