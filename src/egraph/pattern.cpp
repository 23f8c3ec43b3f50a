#include "egraph/pattern.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/sexpr.hpp"

namespace loopegg {

bool is_variable(Symbol symbol) { return symbol.text().size() > 1 && symbol.text()[0] == '?'; }

namespace {

void collect(const Term& t, std::vector<Symbol>& out) {
    if (t.size() == 0 && is_variable(t.op())) {
        if (std::find(out.begin(), out.end(), t.op()) == out.end()) out.push_back(t.op());
    }
    for (const Term& c : t.children()) collect(c, out);
}

}  // namespace

std::vector<Symbol> variables_of(const Term& pattern) {
    std::vector<Symbol> out;
    collect(pattern, out);
    return out;
}

Rewrite rewrite(std::string name, std::string_view left, std::string_view right) {
    Rewrite r;
    r.left = {{Symbol{}, parse_term(left, name)}};
    r.right = {{Symbol{}, parse_term(right, name)}};
    r.name = std::move(name);
    return r;
}

Rewrite backwards(const Rewrite& rule) {
    Rewrite r = rule;
    std::swap(r.left, r.right);
    r.backwards = !rule.backwards;
    return r;
}

std::uint32_t Query::slot(Symbol variable) const {
    for (std::uint32_t i = 0; i < slots.size(); ++i)
        if (slots[i] == variable && !variable.empty()) return i;
    return none;
}

namespace {

std::uint32_t named_slot(Query& q, Symbol variable) {
    std::uint32_t s = q.slot(variable);
    if (s == none) s = static_cast<std::uint32_t>(q.slots.size()), q.slots.push_back(variable);
    return s;
}

void add_atoms(Query& q, const Term& t, std::uint32_t root) {
    const std::size_t at = q.atoms.size();
    q.atoms.push_back({t.op(), root, {}});
    std::vector<std::uint32_t> children;
    for (const Term& c : t.children()) {
        if (c.size() == 0 && is_variable(c.op())) {
            children.push_back(named_slot(q, c.op()));
        } else {
            children.push_back(static_cast<std::uint32_t>(q.slots.size()));
            q.slots.push_back(Symbol{});
        }
    }
    q.atoms[at].children = children;
    for (std::size_t i = 0; i < t.size(); ++i)
        if (t[i].size() != 0 || !is_variable(t[i].op())) add_atoms(q, t[i], children[i]);
}

}  // namespace

Query make_query(const std::vector<Rooted>& patterns) {
    Query q;
    for (const Rooted& p : patterns) {
        std::uint32_t root = none;
        const bool bare = p.term.size() == 0 && is_variable(p.term.op());
        if (bare)
            root = named_slot(q, p.term.op());
        else if (!p.root.empty())
            root = named_slot(q, p.root);
        else
            root = static_cast<std::uint32_t>(q.slots.size()), q.slots.push_back(Symbol{});
        q.roots.push_back(static_cast<std::uint32_t>(q.atoms.size()));
        if (bare)
            q.atoms.push_back({Symbol{}, root, {}});
        else
            add_atoms(q, p.term, root);
    }
    return q;
}

std::vector<PlanStep> make_plan(const Query& q, std::uint32_t first, const std::vector<std::vector<std::uint32_t>>& guard_slots) {
    std::vector<PlanStep> plan;
    std::vector<bool> bound(q.slots.size()), done(q.atoms.size()), asked(guard_slots.size());
    auto take = [&](PlanStep step) {
        const Atom& a = q.atoms[step.atom];
        done[step.atom] = true;
        step.root_known = bound[a.root];
        bound[a.root] = true;
        for (std::uint32_t c : a.children) {
            step.child_known.push_back(bound[c]);
            bound[c] = true;
        }
        for (std::uint32_t g = 0; g < guard_slots.size(); ++g) {
            if (asked[g] || !std::all_of(guard_slots[g].begin(), guard_slots[g].end(), [&](std::uint32_t s) { return s != none && bound[s]; })) continue;
            asked[g] = true;
            step.guards.push_back(g);
        }
        plan.push_back(std::move(step));
    };
    // A constant is one look-up whatever else is bound; knowing its class first rejects most candidates of its parents at once.
    for (std::uint32_t i = 0; i < q.atoms.size(); ++i)
        if (i != first && !q.atoms[i].op.empty() && q.atoms[i].children.empty()) take({Step::probe, i});
    PlanStep start{Step::scan, first};
    for (std::uint32_t k = 0; k < q.atoms[first].children.size(); ++k)
        if (bound[q.atoms[first].children[k]]) start.via = k, start.kind = Step::start_up;
    take(start);
    while (plan.size() < q.atoms.size()) {
        // The cheapest kind of step that some atom allows; the earliest atom among equals.
        PlanStep best{Step::scan, none};
        int best_rank = 100;
        for (std::uint32_t i = 0; i < q.atoms.size(); ++i) {
            if (done[i]) continue;
            const Atom& a = q.atoms[i];
            std::uint32_t known = 0, via = 0;
            for (std::uint32_t k = 0; k < a.children.size(); ++k)
                if (bound[a.children[k]]) ++known, via = k;
            PlanStep step{Step::scan, i, via};
            int rank = 4;
            if (!a.op.empty() && known == a.children.size())
                step.kind = Step::probe, rank = 0;
            else if (bound[a.root])
                step.kind = Step::down, rank = known > 0 ? 1 : 2;
            else if (known > 0)
                step.kind = Step::up, rank = 3;
            if (rank < best_rank) best_rank = rank, best = step;
        }
        take(best);
    }
    return plan;
}

}  // namespace loopegg
