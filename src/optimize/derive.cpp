#include "optimize/derive.hpp"

#include <deque>
#include <unordered_map>

#include "base/error.hpp"
#include "egraph/explain.hpp"

namespace loopegg {
namespace {

// For every class that edges reach, the edge by which it is reached first: the shortest way in neural steps.
std::unordered_map<ClassId, const Edge*> first_edges(const EGraph& graph, std::span<const Term> roots) {
    std::unordered_map<ClassId, std::vector<const Edge*>> leaving;
    for (const Edge& e : graph.edges()) leaving[graph.find(e.from)].push_back(&e);
    std::unordered_map<ClassId, const Edge*> reached;
    std::deque<ClassId> queue;
    for (const Term& root : roots) {
        const auto known = graph.lookup(root);
        if (!known) continue;  // no site of this kind may change
        ClassId c = graph.find(*known);
        if (reached.emplace(c, nullptr).second) queue.push_back(c);
    }
    while (!queue.empty()) {
        ClassId c = queue.front();
        queue.pop_front();
        for (const Edge* e : leaving[c])
            if (ClassId to = graph.find(e->to); reached.emplace(to, e).second) queue.push_back(to);
    }
    return reached;
}

void append(Variant& v, const Proof& proof, const std::vector<Rewrite>& rules, bool neural) {
    if (proof.steps.empty()) return;
    v.proofs.push_back(to_json(proof));
    v.proofs.back()["neural"] = neural;
    std::vector<Term> terms = terms_of(proof, rules);
    for (std::size_t i = 0; i < proof.steps.size(); ++i) {
        const ProofStep& s = proof.steps[i];
        DerivationStep step{s.rule, neural, {}, terms[i], terms[i + 1], s.backwards != s.reversed_rule};
        for (const auto& [variable, term] : s.substitution) step.with.emplace_back(variable.text(), term);
        v.steps.push_back(std::move(step));
    }
}

}  // namespace

void derive_steps(const EGraph& graph, const std::vector<Rewrite>& rules, std::span<const Term> roots, std::span<Variant> variants) {
    const auto reached = first_edges(graph, roots);
    for (Variant& v : variants) {
        auto found = graph.lookup(v.nest);
        // A variant that no site admits has no edge, and needs no derivation.
        if (!found || !reached.contains(graph.find(*found))) continue;
        std::vector<const Edge*> way;  // last edge first
        for (auto it = reached.find(graph.find(*found)); it != reached.end() && it->second; it = reached.find(graph.find(it->second->from)))
            way.push_back(it->second);
        Term at = roots[v.kind];
        for (auto e = way.rbegin(); e != way.rend(); ++e) {
            Proof neural = explain_edge(graph, **e);
            append(v, minimise(explain(graph, at, neural.from), graph), rules, false);
            append(v, neural, rules, true);
            at = neural.to;
        }
        append(v, minimise(explain(graph, at, v.nest), graph), rules, false);
    }
}

}  // namespace loopegg
