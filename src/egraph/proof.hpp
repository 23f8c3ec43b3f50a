// A proof that two terms are equal, flat: rule applications one after another, each at a place in the term.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/term.hpp"
#include "egraph/edges.hpp"
#include "egraph/rewrite.hpp"

namespace loopegg {

using TreePath = std::vector<std::uint32_t>;  // child numbers from the root down

struct ProofStep;

struct Proof {
    Term from, to;
    std::vector<ProofStep> steps;
};

// What a rule of several patterns relies on besides the term that it rewrites: the class of a root variable holds the instance of that root's pattern.
struct Premise {
    Symbol root;
    Proof proof;  // from the variable's term to the pattern's instance
};

struct ProofStep {
    std::string rule;              // the name of the rule; or, of a merge that no rule made, the words that were given for the merge
    bool asserted = false;         // no rule made the merge; then the substitution holds ?from and ?to
    bool backwards = false;        // the step goes from an instance of the right side (as the rule was run) to an instance of the left side
    bool reversed_rule = false;    // the rule was run as the second half of a '<=>'
    std::uint32_t conclusion = 0;  // which right side, of a rule with several right sides
    TreePath at;
    std::vector<std::pair<Symbol, Term>> substitution;  // every variable of the rule
    std::vector<GuardRecord> guards;
    std::vector<Premise> premises;
};

// One line for each step: the term after the step, the rule, and its place.
std::string to_string(const Proof& proof);
// {"from","to","steps":[{"rule","backwards","at","with":{"?a":...},"guards":[...],"premises":[...]}]}, terms as s-expressions.
nlohmann::json to_json(const Proof& proof);

// The part of a term at a place, and the term with that part replaced.
const Term& at(const Term& term, const TreePath& path);
const Term* part_at(const Term& term, const TreePath& path);  // null: the term has no such place
Term with(const Term& term, std::span<const std::uint32_t> path, const Term& part);
// A pattern with its variables replaced.
Term instance(const Term& pattern, const std::vector<std::pair<Symbol, Term>>& substitution);
// The terms of a proof from `from` to `to`: one more than it has steps.
std::vector<Term> terms_of(const Proof& proof, const std::vector<Rewrite>& rules);

}  // namespace loopegg
