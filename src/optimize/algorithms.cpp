#include "optimize/algorithms.hpp"

#include "egraph/runner.hpp"
#include "nest/term/class_terms.hpp"
#include "nest/term/facts.hpp"

namespace loopegg {

std::vector<Term> rows_for(const Term& nest, const RuleBook& book, const Phase& phase, bool strict_fp) {
    constexpr std::size_t most = 16;
    EGraph egraph;
    Binding binding;
    binding.facts = std::make_shared<NestAnalysis>(NestAnalysis::Options{.strict_fp = strict_fp, .proven = true});
    egraph.attach(binding.facts);
    const ClassId root = egraph.add(Term("site", {nest}));
    egraph.rebuild();
    Runner(egraph, bind_rules(book.rules_of(phase), binding)).run(limits_of(phase));
    std::vector<Term> rows;
    for (Term& value : ClassTerms(egraph).all(root, most))
        if (value.is("prepare", 2)) rows.push_back(std::move(value));
    return rows;
}

Term with_nests(const Term& row, const std::vector<Term>& nests) {
    Term value("site", {nests.front()});
    for (std::size_t i = 1; i < nests.size(); ++i) value = Term("then", {value, nests[i]});
    return Term("prepare", {row[0], value});
}

}  // namespace loopegg
