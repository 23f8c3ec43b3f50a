#include "optimize/tune/algorithms.hpp"

#include "base/places.hpp"
#include "egraph/runner.hpp"
#include "nest/term/class_terms.hpp"
#include "rewrite/rule_books.hpp"
#include "rules/judged.hpp"
#include "rules/limits.hpp"

namespace loopegg {

std::vector<Term> equal_terms(const Term& term, const RuleBook& book, const Phase& phase, const NestAnalysis::Options& options, std::size_t most) {
    EGraph egraph;
    Binding binding;
    NestAnalysis::Options allowed = options;
    allowed.proven = options.proven && !uses_unproved_rules();
    binding.facts = std::make_shared<NestAnalysis>(allowed);
    egraph.attach(binding.facts);
    const ClassId root = egraph.add(term);
    egraph.rebuild();
    Runner(egraph, bind_rules(book.rules_of(phase), binding)).run(limits_of(phase));
    return ClassTerms(egraph).all(egraph.find(root), most);
}

std::vector<Term> rows_for(const Term& nest, const RuleBook& book, const Phase& phase, bool strict_fp) {
    constexpr std::size_t most = 16;
    std::vector<Term> rows;
    for (Term& value : equal_terms(Term("site", {nest}), book, phase, {.strict_fp = strict_fp, .proven = true, .gpu = {}, .cpu = {}}, most))
        if (value.is("prepare", 2)) rows.push_back(std::move(value));
    return rows;
}

Algorithms::Algorithms(const Target& target)
    : book_(book_with_phase("algorithms", target.rules, shipped("rules/algorithms.rules"))), phase_(target.gpu() ? nullptr : book_->find_phase("algorithms")) {}

std::vector<Term> Algorithms::rows(const Term& nest) const { return phase_ ? rows_for(nest, *book_, *phase_, false) : std::vector<Term>{}; }

Term with_nests(const Term& row, const std::vector<Term>& nests) {
    Term value("site", {nests.front()});
    for (std::size_t i = 1; i < nests.size(); ++i) value = Term("then", {value, nests[i]});
    return Term("prepare", {row[0], value});
}

}  // namespace loopegg
