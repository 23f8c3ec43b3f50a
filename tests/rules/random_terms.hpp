// Terms drawn from saturated e-graphs over every statement, and what can be wrong with one.
#pragma once
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "egraph/egraph.hpp"
#include "nest/term/class_terms.hpp"
#include "nest/term/facts.hpp"
#include "rules/rule.hpp"

namespace loopegg {

// Small statements, with extents that few factors divide. Every operator of statement_forms() is among them.
std::span<const char* const> sampled_statements();

RuleBook shipped_rules(const std::string& file);

// Which rules, and how their terms are drawn.
struct RuleSelection {
    std::vector<RuleBook> books;
    std::vector<std::string> sets{};  // empty: all sets of the books
    bool takes(const Rule& rule) const;
    bool strict_fp = false;
    int levels = 0;  // how deep axes may be (ShallowTerms); 0: any depth, without passing through one class twice (ClassTerms)
    std::size_t iterations = 7, nodes = 12000;
};

// A statement's nest and all that the rules make of it.
class TermSource {
public:
    TermSource(const char* statement, const RuleSelection& selection);
    Term sample(std::mt19937_64& random);                              // a term of the nest itself or, where rules restrict, of one of its variants
    const std::set<std::string>& applied() const { return applied_; }  // rules that changed something

private:
    EGraph graph_;
    std::shared_ptr<NestAnalysis> facts_;
    std::vector<ClassId> roots_;
    std::unique_ptr<ClassTerms> terms_;
    std::unique_ptr<ShallowTerms> shallow_;
    std::set<std::string> applied_;
};

struct Check {
    bool whole = true;  // the nest must visit every instance, because no rule restricts
    bool strict_fp = false;
    bool run = true;  // run the interpreter, too
};

// What is wrong with a nest by the analysis, by isl and by the interpreter; "" for nothing. `ran` tells whether the interpreter could run the nest:
// resolve() refuses a stage whose tile is no product of loops.
std::string wrong(const Term& nest, const Check& check, bool* ran = nullptr);

}  // namespace loopegg
