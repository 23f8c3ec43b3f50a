#include "optimize/discover.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "egraph/runner.hpp"
#include "optimize/derive.hpp"
#include "optimize/named_sequences.hpp"
#include "rules/limits.hpp"

namespace loopegg {
namespace {

std::vector<Variant> originals(const Sites& sites) {
    std::vector<Variant> out;
    for (std::size_t k = 0; k < sites.kinds.size(); ++k) {
        const Site& first = sites.all[sites.kinds[k].sites[0]];
        out.push_back({k, {}, sites.kinds[k].nest, first.macs, first.parameters, {}, {}, "dense"});
    }
    return out;
}

}  // namespace

Discovery originals_only(const Sites& sites, const std::string& why) {
    Discovery found;
    found.variants = originals(sites);
    found.stop = why;
    return found;
}

Discovery discover(const Graph& graph, const Sites& sites, const PhaseRules& with, CapacityOracle& oracle, const GuardQueueOptions& options,
                   Progress& progress) {
    const auto& [book, phase, passes] = with;
    GuardQueueOptions with_progress = options;
    with_progress.told = [&](std::int64_t judged, std::int64_t budget) { progress.advance(judged, fmt::format("of {} configurations judged", budget)); };
    GuardQueue queue(graph, sites, oracle, with_progress);

    EGraph egraph(EGraph::Options{.proofs = true});
    Binding binding;
    binding.facts = book.language->make_facts ? book.language->make_facts() : nullptr;
    if (binding.facts) egraph.attach(binding.facts);
    binding.capacity = [&](const EGraph& g, std::span<const CapacityProposal> proposals) { return queue.answer(g, proposals); };
    std::vector<Term> roots;
    for (const SiteKind& k : sites.kinds) {
        roots.push_back(k.nest);
        // Nothing grows from a nest that all of its sites keep.
        if (!sites.all_kept(k)) egraph.add(k.nest);
    }
    egraph.rebuild();

    // First the e-graph gets every order of loops that exact rules reach, while there are few nests: loops that a neural rule needs side by side may be far
    // apart in a nest.
    if (const Phase* arrange = book.find_phase("arrange")) Runner(egraph, bind_rules(book.rules_of(*arrange), binding)).run(limits_of(*arrange));

    std::vector<const Rule*> rules = book.rules_of(phase);
    std::vector<Rewrite> rewrites = bind_rules(rules, binding);
    std::vector<std::vector<Rewrite>> sets;
    for (const std::string& name : phase.sets) {
        std::vector<const Rule*> of_set;
        for (const Rule& r : book.find_set(name)->rules) of_set.push_back(&r);
        sets.push_back(bind_rules(of_set, binding));
    }
    RunOptions run = limits_of(phase);
    run.after_iteration = [&](const IterationReport&) { return !queue.exhausted(); };  // nothing more could be admitted
    RunReport report = run_passes(egraph, sets, passes, run);

    Discovery found;
    found.variants = originals(sites);
    const std::size_t first = found.variants.size();
    for (const Variant& v : queue.variants()) found.variants.push_back(v);
    derive_steps(egraph, rewrites, roots, std::span(found.variants).subspan(first));
    for (Variant& v : found.variants)
        if (std::string name = paper_sequence(v.steps); !name.empty()) v.effect = std::move(name);
    for (Admission a : queue.judged()) {
        a.variant += first;
        found.admissions.push_back(std::move(a));
    }
    for (const Rule* r : rules) found.rules_fired[r->name] = 0;
    for (const IterationReport& it : report.iterations)
        for (const RuleReport& r : it.rules) found.rules_fired[r.rule] += r.applications;
    found.rules_asked = queue.asked();
    found.configurations = queue.configurations(), found.rejected = queue.rejected(), found.refused = queue.refused();
    found.stop = name_of(report.stop), found.nodes = egraph.node_count(), found.classes = egraph.class_count();
    return found;
}

}  // namespace loopegg
