#include "rewrite/fusion_rules.hpp"

#include <map>

#include "egraph/explain.hpp"
#include "egraph/runner.hpp"
#include "extract/from_egraph.hpp"
#include "extract/search_terms.hpp"
#include "nest/term/blockwise.hpp"
#include "nest/term/class_terms.hpp"
#include "nest/term/facts.hpp"
#include "nest/term/grammar.hpp"
#include "nest/term/statement.hpp"
#include "rewrite/rule_books.hpp"
#include "rules/judged.hpp"
#include "rules/limits.hpp"
#include "rules/load.hpp"

namespace loopegg {
namespace {

constexpr double nest_cost = 1000;  // more than any number of operands

// The cost at run time, where prepared constants cost nothing.
double running_cost(const Term& value) {
    if (value.is("prepare", 2)) return running_cost(value[1]);
    const Term& nest = value[value.size() - 1];
    const double own = nest_cost + static_cast<double>(statement_of(nest_parts(nest).statement).buffers.size());
    return value.is("then", 2) || value.is("feed", 3) ? running_cost(value[value.size() - 2]) + own : own;
}

}  // namespace

FusionRules::FusionRules(std::shared_ptr<const RuleBook> book) : book_(std::move(book)), phase_(book_->find_phase("fuse")) {}

FusionRules::FusionRules(const std::filesystem::path& file) : FusionRules(std::make_shared<const RuleBook>(load_rules(file))) {}

std::shared_ptr<const FusionRules> FusionRules::of(const std::filesystem::path& own, const std::filesystem::path& shipped) {
    static std::mutex mutex;
    static std::map<std::shared_ptr<const RuleBook>, std::shared_ptr<const FusionRules>> all;
    const auto book = book_with_phase("fuse", own, shipped);
    const std::lock_guard lock(mutex);
    auto& found = all[book];
    if (!found) found.reset(new FusionRules(book));
    return found;
}

std::vector<FusionStep> FusionRules::derive(const Term& value) const {
    EGraph graph(EGraph::Options{.proofs = true});
    Binding binding;
    const auto facts = std::make_shared<NestAnalysis>(NestAnalysis::Options{.proven = !uses_unproved_rules()});
    binding.facts = facts;
    graph.attach(facts);
    const ClassId added = graph.add(value);
    const std::vector<Rewrite> rules = bind_rules(book_->rules_of(*phase_), binding);
    Runner(graph, rules).run(limits_of(*phase_));
    const ClassId roots[] = {graph.find(added)};
    const EGraphCopy copy = copy_of(graph, roots);
    const TermCost cost = [](std::span<const Term> values) {
        std::vector<double> all;
        for (const Term& v : values) all.push_back(running_cost(v));
        return all;
    };
    const FoundTerms found = search_terms(copy.egraph, copy.egraph.roots.front(), 1, cost);
    std::vector<FusionStep> steps;
    if (found.best.empty() || found.best.front().cost >= running_cost(value)) return steps;
    const Proof proof = minimise(explain(graph, value, found.best.front().term), graph);
    const std::vector<Term> terms = terms_of(proof, rules);
    for (std::size_t i = 0; i < proof.steps.size(); ++i) {
        const double saved = running_cost(terms[i]) - running_cost(terms[i + 1]);
        const auto effect = saved > nest_cost / 2 ? FusionStep::Effect::takes_in : saved > 0 ? FusionStep::Effect::prepares : FusionStep::Effect::arranges;
        steps.push_back({proof.steps[i].rule, terms[i + 1], effect});
    }
    return steps;
}

std::vector<BlockForm> FusionRules::block_forms(const Term& value, bool strict_fp) const {
    constexpr std::size_t most = 256;  // terms of the class, of which a few are computed block by block
    const Phase* phase = book_->find_phase("stream");
    std::vector<BlockForm> forms;
    if (!phase) return forms;
    EGraph graph(EGraph::Options{.proofs = true});
    Binding binding;
    const auto facts = std::make_shared<NestAnalysis>(NestAnalysis::Options{.strict_fp = strict_fp, .proven = !uses_unproved_rules(), .gpu = {}, .cpu = {}});
    binding.facts = facts;
    graph.attach(facts);
    const ClassId root = graph.add(value);
    const std::vector<Rewrite> rules = bind_rules(book_->rules_of(*phase), binding);
    Runner(graph, rules).run(limits_of(*phase));
    for (Term& term : ClassTerms(graph).all(graph.find(root), most)) {
        if (!blockwise_form(term, 1)) continue;
        BlockForm form{std::move(term), {}};
        for (const ProofStep& step : minimise(explain(graph, value, form.value), graph).steps) form.rules.push_back(step.rule);
        forms.push_back(std::move(form));
    }
    return forms;
}

std::vector<FusionStep> FusionRules::fuse(const Term& value) const {
    if (!phase_) return {};
    {
        const std::lock_guard lock(mutex_);
        if (const auto known = known_.find(value); known != known_.end()) return known->second;
    }
    std::vector<FusionStep> steps = derive(value);
    const std::lock_guard lock(mutex_);
    return known_.emplace(value, std::move(steps)).first->second;
}

}  // namespace loopegg
