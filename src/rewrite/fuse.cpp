// A row of sites becoming fewer, by the phase 'fuse': the value that is taken out of the e-graph, and the proof that leads to it.
#include "egraph/explain.hpp"
#include "egraph/runner.hpp"
#include "extract/from_egraph.hpp"
#include "nest/term/facts.hpp"
#include "rewrite/site_rules.hpp"

namespace loopegg {
namespace {

// Every site is a pass over memory, every epilogue some work on each output element: a scale and a shift are two.
double fusion_cost(const Term& value) {
    constexpr double site = 1000;
    if (value.size() == 0) return 0;
    const std::string& op = value.op().text();
    double cost = op == "then" ? site : op == "epilogue" ? (value[0].op().text() == "scale_shift" ? 2 : 1) : 0;
    for (const Term& child : value.children()) cost += fusion_cost(child);
    return cost;
}

}  // namespace

std::vector<FusionStep> SiteRules::fuse(const Term& value) const {
    const RuleBook* book = book_with("fuse");
    if (!book) return {};
    {
        const std::lock_guard lock(mutex_);
        if (const auto known = fused_.find(value); known != fused_.end()) return known->second;
    }
    const Phase& phase = *book->find_phase("fuse");
    EGraph egraph(EGraph::Options{.proofs = true});
    Binding binding;
    binding.facts = std::make_shared<NestAnalysis>();
    egraph.attach(binding.facts);
    const ClassId root = egraph.add(value);
    egraph.rebuild();
    const std::vector<Rewrite> rewrites = bind_rules(book->rules_of(phase), binding);
    Runner(egraph, rewrites).run(limits_of(phase));
    const ClassId roots[] = {egraph.find(root)};
    const EGraphCopy copy = copy_of(egraph, roots);
    const TermCost cost = [](std::span<const Term> values) {
        std::vector<double> all;
        for (const Term& v : values) all.push_back(fusion_cost(v));
        return all;
    };
    std::vector<FusionStep> steps;
    const FoundTerms found = search_terms(copy.egraph, copy.egraph.roots.front(), 1, cost);
    if (!found.best.empty() && found.best[0].cost < fusion_cost(value)) {
        const Proof proof = minimise(explain(egraph, value, found.best[0].term), egraph);
        const std::vector<Term> terms = terms_of(proof, rewrites);
        for (std::size_t i = 0; i < proof.steps.size(); ++i) steps.push_back({proof.steps[i].rule, terms[i + 1]});
    }
    const std::lock_guard lock(mutex_);
    return fused_.emplace(value, std::move(steps)).first->second;
}

}  // namespace loopegg
