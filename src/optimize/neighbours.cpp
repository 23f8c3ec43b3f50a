#include "optimize/neighbours.hpp"

#include <random>
#include <unordered_set>

#include "egraph/runner.hpp"
#include "nest/term/class_terms.hpp"

namespace loopegg {

std::vector<Term> neighbours(const Term& nest, const RuleBook& book, const Phase& phase, std::uint64_t seed, std::size_t most) {
    EGraph egraph;
    Binding binding;
    binding.facts = book.language->make_facts ? book.language->make_facts() : nullptr;
    if (binding.facts) egraph.attach(binding.facts);
    const ClassId root = egraph.add(nest);
    egraph.rebuild();
    Runner(egraph, bind_rules(book.rules_of(phase), binding)).run(limits_of(phase));

    ClassTerms space(egraph);
    std::mt19937_64 random(seed);
    std::unordered_set<Term> seen{nest};
    std::vector<Term> out;
    for (std::size_t i = 0; i < 4 * most && out.size() < most; ++i)   // a small class gives few that are new
        if (Term t = space.sample(root, random); seen.insert(t).second) out.push_back(std::move(t));
    return out;
}

}  // namespace loopegg
