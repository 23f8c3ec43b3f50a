// Applies rules over networks to terms, one at a time, as a plan says or as an extraction took them.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "egraph/egraph.hpp"
#include "egraph/proof.hpp"
#include "egraph/rewrite.hpp"
#include "graph/graph.hpp"
#include "nest/term/facts.hpp"
#include "rules/rule.hpp"

namespace loopegg {

// What the variables of `:for` represent, by name.
using ChosenValues = std::map<std::string, Term>;

// One application of a rule to a whole network. What the other variables represent is determined by the term.
struct NetStep {
    std::string rule;
    bool neural = false;
    TreePath at;
    ChosenValues with;
    // Of a neural step:
    std::vector<std::string> sites{};   // that lose outputs, or are left out
    TreePath in_original{};             // the same place in the term of the original network
    std::vector<std::string> inside{};  // the sites of the original at that place
    std::vector<GuardRecord> guards{};  // what the guards answered
};

class NetRewriter {
public:
    explicit NetRewriter(const RuleBook& book, std::int64_t channels_step = 1);
    ~NetRewriter();

    // The right side of a rule where its left side is the term; none where the left side is another term, or where a guard refuses. Then `why` says so.
    // `offered`: the values have to be in the lists of the rule.
    std::optional<Term> apply(const std::string& rule, const Term& term, const ChosenValues& values, bool offered = true, std::string* why = nullptr);

    // Moves all widths into the layers: the exact rules over `write`, `read`, `lack` and `within`, applied from left to right until none applies. The steps
    // are added to `steps`.
    Term normal_form(const Term& net, std::vector<NetStep>& steps);

    // The names of the rules over networks.
    std::vector<std::string> neural_rules() const;
    const Rewrite* find(const std::string& rule) const;

private:
    struct Scratch;
    using Bound = std::map<Symbol, Term>;
    bool choose(const Rewrite& rewrite, const ChosenValues& values, bool offered, Bound& bound, std::string& why);
    bool guards_hold(const Rewrite& rewrite, const Bound& bound, std::string& why);
    Term normal(Term net, TreePath& at, std::vector<NetStep>& steps);
    std::optional<Term> width_step(const Term& net, const TreePath& at, std::vector<NetStep>& steps);

    std::vector<Rewrite> neural_, widths_;
    std::unique_ptr<Scratch> scratch_;
};

// The sites that are gone from a network, or that write fewer channels.
std::vector<std::string> narrowed_sites(const Term& before, const Term& after);

// NamedRules::apply for a rule over networks.
std::optional<Graph> apply_at_site(NetRewriter& rewriter, const std::string& rule, const ChosenValues& values, const Graph& graph, const std::string& site);

// Matches a pattern with a term. What variables represent is added to `bound`.
bool matches(const Term& pattern, const Term& term, std::map<Symbol, Term>& bound);

}  // namespace loopegg
