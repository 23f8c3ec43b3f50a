#include "egraph/explain.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <unordered_map>

#include "base/error.hpp"
#include "egraph/compiled.hpp"

namespace loopegg {
namespace {

// A step before its place in the whole term is known. What it applies is shared by every proof that uses it.
struct Application {
    ProofStep step;    // with at empty
    Term left, right;  // of the rewritten part
};
struct Local {
    std::shared_ptr<const Application> what;
    TreePath at;
    bool backwards;
};
using Steps = std::vector<Local>;

constexpr std::size_t longest = 2'000'000;  // steps of one proof; beyond, it is of no use to anybody

class Explainer {
public:
    explicit Explainer(const EGraph& graph) : graph_(graph), table_(graph.table()), forest_(*graph.forest()) {}

    const Term& term(NodeId n) {
        auto it = terms_.find(n);
        if (it != terms_.end()) return it->second;
        std::vector<Term> children;
        for (ClassId c : made_with(n)) children.push_back(term(forest_.founder(c)));
        return terms_[n] = Term(symbol(n), std::move(children));
    }

    // From a term as given to the term of a node that represents it.
    NodeId represent(const Term& t, Steps& out, TreePath at) {
        std::vector<ClassId> classes;
        std::vector<NodeId> nodes;
        std::vector<Steps> parts(t.size());
        for (std::uint32_t i = 0; i < t.size(); ++i) {
            nodes.push_back(represent(t[i], parts[i], {}));
            classes.push_back(graph_.find(table_.record(nodes[i]).in));
        }
        const OpId op = table_.find_op(t.op(), static_cast<std::uint32_t>(t.size()));
        const NodeId n = op == none ? none : table_.find(op, classes);
        if (n == none) throw UserError("the e-graph does not represent " + to_string(t));
        for (std::uint32_t i = 0; i < t.size(); ++i) {
            append(parts[i], path(nodes[i], forest_.founder(made_with(n)[i])), {});
            TreePath place = at;
            place.push_back(i);
            append(out, parts[i], place);
        }
        return n;
    }

    // The steps from the term of x to the term of y.
    const Steps& path(NodeId x, NodeId y) {
        const std::uint64_t key = std::uint64_t{x} << 32 | y;
        if (auto it = paths_.find(key); it != paths_.end()) return it->second;
        Steps out;
        if (x != y && !(term(x) == term(y))) {
            std::vector<NodeId> from{x}, to{y};
            std::unordered_map<NodeId, std::size_t> seen{{x, 0}};
            while (!forest_.root(from.back())) from.push_back(forest_.up(from.back()).to), seen.emplace(from.back(), from.size() - 1);
            while (!seen.contains(to.back())) {
                require(!forest_.root(to.back()), "two nodes of one class are in different trees of the proof forest");
                to.push_back(forest_.up(to.back()).to);
            }
            from.resize(seen.at(to.back()) + 1);
            for (std::size_t i = 0; i + 1 < from.size(); ++i) edge(from[i], out, false);
            for (std::size_t i = to.size() - 1; i-- > 0;) edge(to[i], out, true);
            cut(term(x), out);
        }
        return paths_[key] = std::move(out);
    }

    Proof flat(const Term& from, const Term& to, const Steps& steps) {
        Proof p{from, to, {}};
        for (const Local& s : steps) {
            ProofStep step = s.what->step;
            step.at = s.at;
            step.backwards = s.backwards;
            p.steps.push_back(std::move(step));
        }
        return p;
    }

    // Steps that come back to a term that was there before are left out.
    void cut(const Term& from, Steps& steps) {
        std::vector<Term> terms{from};
        for (const Local& s : steps) terms.push_back(with(terms.back(), s.at, s.backwards ? s.what->left : s.what->right));
        std::unordered_map<Term, std::size_t> last;
        for (std::size_t i = 0; i < terms.size(); ++i) last[terms[i]] = i;
        Steps kept;
        for (std::size_t i = last[terms[0]]; i < steps.size(); i = last[terms[i + 1]]) kept.push_back(steps[i]);
        steps = std::move(kept);
    }

    // One application as it was recorded.
    struct Recorded {
        const CompiledRewrite* rule;
        std::span<const NodeId> atoms, choices, built;
    };
    Recorded recorded(Reason r) const {
        const CompiledRewrite& rule = *graph_.rules()[forest_.rule(r)];
        const auto words = forest_.words(r, rule.reason_words()).subspan(1);
        const std::size_t a = rule.query().atoms.size(), c = rule.rule().choices.size();
        return {&rule, words.subspan(0, a), words.subspan(a, c), words.subspan(a + c)};
    }

    std::shared_ptr<const Application> application(Reason r, std::uint32_t conclusion) {
        auto& made = applications_[{r, conclusion}];
        if (made) return made;
        const Recorded rec = recorded(r);
        auto out = std::make_shared<Application>();
        const Rewrite& rule = rec.rule->rule();
        out->step.rule = rule.name;
        out->step.reversed_rule = rule.backwards;
        out->step.conclusion = conclusion;
        for (std::uint32_t s = 0; s < rec.rule->query().slots.size(); ++s)
            if (!rec.rule->query().slots[s].empty()) out->step.substitution.emplace_back(rec.rule->query().slots[s], term(standing_for(rec, s)));
        for (std::size_t i = 0; i < rule.choices.size(); ++i) out->step.substitution.emplace_back(rule.choices[i].variable, term(rec.choices[i]));
        if (const auto* guards = forest_.evidence(r)) out->step.guards = *guards;
        const Conclusion& c = rec.rule->conclusions()[conclusion];
        for (std::size_t i = 0; i < rule.left.size(); ++i) {
            const Term whole = instance(rule.left[i].term, out->step.substitution);
            if (rec.rule->query().roots[i] == c.left_atom) out->left = whole;
            if (rule.left[i].root.empty() || rec.rule->bare()) continue;
            Steps steps;
            left_steps(rec, rec.rule->query().roots[i], {}, steps);
            const Term from = term(rec.atoms[rec.rule->query().roots[i]]);
            // The root variable may first have been read elsewhere, as a child; then its term is that one.
            const NodeId root = standing_for(rec, rec.rule->query().atoms[rec.rule->query().roots[i]].root);
            Steps before = path(root, rec.atoms[rec.rule->query().roots[i]]);
            append(before, steps, {});
            cut(term(root), before);
            out->step.premises.push_back({rule.left[i].root, flat(term(root), whole, before)});
        }
        out->right = instance(rule.right[conclusion].term, out->step.substitution);
        return made = out;
    }

    // From the term of the matched node to the instance of the pattern.
    void left_steps(const Recorded& rec, std::uint32_t atom, TreePath at, Steps& out) {
        const Atom& a = rec.rule->query().atoms[atom];
        const auto children = made_with(rec.atoms[atom]);
        for (std::uint32_t k = 0; k < a.children.size(); ++k) {
            TreePath place = at;
            place.push_back(k);
            const std::uint32_t slot = a.children[k];
            const NodeId here = forest_.founder(children[k]);
            if (rec.rule->query().slots[slot].empty()) {  // a part of the pattern, with an atom of its own
                const std::uint32_t inner = atom_at(rec.rule->query(), slot, atom);
                append(out, path(here, rec.atoms[inner]), place);
                left_steps(rec, inner, place, out);
            } else {
                append(out, path(here, standing_for(rec, slot)), place);
            }
        }
    }

    // From the instance of the right side to the term of the node that was built for it.
    void right_steps(const Recorded& rec, std::uint32_t build, TreePath at, Steps& out) {
        const Build& b = rec.rule->builds()[build];
        const auto children = made_with(rec.built[build]);
        for (std::uint32_t k = 0; k < b.children.size(); ++k) {
            TreePath place = at;
            place.push_back(k);
            const Place p = b.children[k];
            const NodeId goal = forest_.founder(children[k]);
            if (p >= rec.rule->build_place(0)) {
                const std::uint32_t inner = p - static_cast<std::uint32_t>(rec.rule->build_place(0));
                right_steps(rec, inner, place, out);
                append(out, path(rec.built[inner], goal), place);
            } else {
                append(out, path(standing_for(rec, p), goal), place);
            }
        }
    }

    // The node whose term a variable represents.
    NodeId standing_for(const Recorded& rec, Place p) const {
        if (p >= rec.rule->query().slots.size()) return rec.choices[p - rec.rule->query().slots.size()];
        const CompiledRewrite::Source s = rec.rule->sources()[p];
        return s.child == none ? rec.atoms[s.atom] : forest_.founder(made_with(rec.atoms[s.atom])[s.child]);
    }

    static void append(Steps& out, const Steps& more, const TreePath& at) {
        if (out.size() + more.size() > longest) throw UserError("the proof is longer than " + std::to_string(longest) + " steps");
        for (const Local& s : more) {
            TreePath place = at;
            place.insert(place.end(), s.at.begin(), s.at.end());
            out.push_back({s.what, std::move(place), s.backwards});
        }
    }

private:
    Symbol symbol(NodeId n) const { return table_.op(table_.record(n).op & ~NodeTable::dead_bit).symbol; }
    std::span<const ClassId> made_with(NodeId n) const { return forest_.made_with(n, table_.arity(table_.record(n))); }

    static std::uint32_t atom_at(const Query& q, std::uint32_t slot, std::uint32_t after) {
        for (std::uint32_t i = after + 1; i < q.atoms.size(); ++i)
            if (q.atoms[i].root == slot) return i;
        throw InternalFault("a part of a pattern has no atom");
    }

    // The edge from n towards its root; against it when `reverse`.
    void edge(NodeId n, Steps& out, bool reverse) {
        const ProofForest::Link link = forest_.up(n);
        const NodeId x = link.forward ? n : link.to, y = link.forward ? link.to : n;  // the reason's left and right
        Steps steps;
        if (link.reason == congruence) {
            const auto from = made_with(x), to = made_with(y);
            for (std::uint32_t k = 0; k < from.size(); ++k) append(steps, path(forest_.founder(from[k]), forest_.founder(to[k])), {k});
        } else if (forest_.rule(link.reason) == ProofForest::asserted) {
            auto made = std::make_shared<Application>();
            made->step.rule = Symbol::from_id(forest_.words(link.reason, 2)[1]).text();
            made->step.asserted = true;
            made->step.substitution = {{Symbol("?from"), term(x)}, {Symbol("?to"), term(y)}};
            made->left = term(x);
            made->right = term(y);
            steps.push_back({made, {}, false});
        } else {
            const Recorded rec = recorded(link.reason);
            const std::uint32_t c = conclusion_of(rec, x, y);
            const Conclusion& conclusion = rec.rule->conclusions()[c];
            if (!rec.rule->bare()) left_steps(rec, conclusion.left_atom, {}, steps);
            steps.push_back({application(link.reason, c), {}, false});
            if (conclusion.build != none) right_steps(rec, conclusion.build, {}, steps);
        }
        if (link.forward == reverse) {  // wanted from the right to the left
            std::reverse(steps.begin(), steps.end());
            for (Local& s : steps) s.backwards = !s.backwards;
        }
        append(out, steps, {});
    }

    std::uint32_t conclusion_of(const Recorded& rec, NodeId left, NodeId right) const {
        const auto& all = rec.rule->conclusions();
        for (std::uint32_t i = 0; i < all.size(); ++i) {
            const NodeId r = all[i].build != none ? rec.built[all[i].build] : standing_for(rec, all[i].place);
            if (rec.atoms[all[i].left_atom] == left && r == right) return i;
        }
        throw InternalFault("a recorded reason does not fit its edge");
    }

    const EGraph& graph_;
    const NodeTable& table_;
    const ProofForest& forest_;
    std::unordered_map<NodeId, Term> terms_;
    std::map<std::uint64_t, Steps> paths_;  // references into it stay good while it grows
    std::map<std::pair<Reason, std::uint32_t>, std::shared_ptr<const Application>> applications_;
};

void need_proofs(const EGraph& graph) {
    if (!graph.proofs()) throw UserError("this e-graph keeps no proofs; make it with proofs on");
}

}  // namespace

Proof explain(const EGraph& graph, const Term& from, const Term& to) {
    need_proofs(graph);
    Explainer explainer(graph);
    Steps steps, back;
    const NodeId x = explainer.represent(from, steps, {}), y = explainer.represent(to, back, {});
    const ClassId cx = graph.find(graph.table().record(x).in), cy = graph.find(graph.table().record(y).in);
    if (cx != cy && !graph.linked(x, y)) throw UserError("the e-graph does not hold that " + to_string(from) + " equals " + to_string(to));
    Explainer::append(steps, explainer.path(x, y), {});
    std::reverse(back.begin(), back.end());
    for (Local& s : back) s.backwards = !s.backwards;
    Explainer::append(steps, back, {});
    explainer.cut(from, steps);
    return explainer.flat(from, to, steps);
}

Proof explain_edge(const EGraph& graph, const Edge& edge) {
    need_proofs(graph);
    Explainer explainer(graph);
    const auto made = explainer.application(edge.reason, 0);
    return explainer.flat(made->left, made->right, {{made, {}, false}});
}

Term founding_term(const EGraph& graph, NodeId node) {
    need_proofs(graph);
    return Explainer(graph).term(node);
}

}  // namespace loopegg
