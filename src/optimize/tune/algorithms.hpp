// Other ways to compute or to store what a site computes, by rules/algorithms.rules. Nests in a row may together represent one.
#pragma once
#include <memory>
#include <vector>

#include "backends/target/target.hpp"
#include "base/term.hpp"
#include "nest/term/facts.hpp"
#include "rules/rule.hpp"

namespace loopegg {

// Up to `most` terms that the rules of the phase make equal to `term`, which is one of them.
std::vector<Term> equal_terms(const Term& term, const RuleBook& book, const Phase& phase, const NestAnalysis::Options& options, std::size_t most);

// The VALUEs (prepare HOW ROW) that the phase makes equal to a site of this nest. Their nests are naive. Empty where sums must keep their order.
std::vector<Term> rows_for(const Term& nest, const RuleBook& book, const Phase& phase, bool strict_fp);

// The rows of nests that a target's rules give: those of the user's file where it has the phase `algorithms`. None for GPUs.
class Algorithms {
public:
    explicit Algorithms(const Target& target);
    std::vector<Term> rows(const Term& nest) const;  // where sums may be taken another way

private:
    std::shared_ptr<const RuleBook> book_;
    const Phase* phase_;
};

// The same row with other nests, one for each nest of the row.
Term with_nests(const Term& row, const std::vector<Term>& nests);

}  // namespace loopegg
