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

// Small, with extents that few factors divide; every operator of statement_forms() is among them.
std::span<const char* const> sampled_statements();

RuleBook shipped_rules(const std::string& file);

// Which rules, and how their terms are drawn.
struct RuleSelection {
    std::vector<RuleBook> books;
    std::vector<std::string> sets{};  // none: all of the books'
    bool takes(const Rule& rule) const;
    bool strict_fp = false;
    int levels = 0;  // of its axes (ShallowTerms); 0: as many as there are, without going in a circle
    std::size_t iterations = 7, nodes = 12000;
};

// A statement's nest and all that the rules make of it.
class TermSource {
public:
    TermSource(const char* statement, const RuleSelection& selection);
    Term sample(std::mt19937_64& random);                              // of the nest itself or, where rules restrict, of one of its variants
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
    bool whole = true;  // it must visit every instance: no rule restricts
    bool strict_fp = false;
    bool run = true;  // interpret it, too
};

// What is wrong with a nest by the analysis, by isl and by the interpreter; "" for nothing. `ran` tells whether the interpreter could run it:
// tiles that are no product of loops are not staged, and resolve() says so.
std::string wrong(const Term& nest, const Check& check, bool* ran = nullptr);

}  // namespace loopegg
