#include "egraph/search.hpp"

#include <algorithm>
#include <numeric>

namespace loopegg {
namespace {

enum class Age : std::uint8_t { any, old, fresh };

class Machine {
public:
    Machine(const EGraph& graph, SearchIndex& index, const CompiledRewrite& rule, std::uint32_t since, const Budget& budget, Flat<NodeId>& out)
        : graph_(graph), table_(graph.table()), index_(index), rule_(rule), since_(since), budget_(budget), out_(out),
          slots_(rule.query().slots.size()), atoms_(rule.query().atoms.size()), ages_(rule.query().atoms.size(), Age::any) {
        for (const Atom& a : rule.query().atoms) ops_.push_back(table_.find_op(a.op, static_cast<std::uint32_t>(a.children.size())));
        reads_facts_ = !rule.rule().guards.empty() || !rule.rule().choices.empty();
        if (reads_facts_ && since > 0) marked_ = &index.fresh(since, true).marked;
        out_before_ = out.size();
    }

    SearchEnd plain() {
        begin(0, since_ > 0);
        for (NodeId n : index_.all(ops_[0])) if (!candidate(0, n)) break;
        return end_;
    }

    SearchEnd incremental() {
        if (since_ == 0) return plain();
        const SearchIndex::Fresh& fresh = index_.fresh(since_, reads_facts_);
        for (std::uint32_t i = 0; i < ops_.size(); ++i) {
            if (fresh.of(ops_[i]).empty()) continue;
            std::fill(ages_.begin(), ages_.end(), Age::any);
            std::fill(ages_.begin(), ages_.begin() + i, Age::old);
            ages_[i] = Age::fresh;
            begin(i, false);
            for (NodeId n : fresh.of(ops_[i])) if (!candidate(0, n)) return end_;
        }
        return end_;
    }

private:
    void begin(std::uint32_t first, bool drop_old) {
        plan_ = &rule_.plan(first);
        drop_old_ = drop_old;
    }

    bool is_fresh(NodeId n) const { return marked_ ? (*marked_)[n] : graph_.stamp(n) > since_; }

    // Tries a node for the atom of step `depth` and all that follows. False when the search must end.
    bool candidate(std::size_t depth, NodeId n) {
        if (++tried_ % 4096 == 0 && !within_budget()) return false;
        const PlanStep& step = (*plan_)[depth];
        const Atom& atom = rule_.query().atoms[step.atom];
        const NodeTable::Record& r = table_.record(n);
        if (r.op != ops_[step.atom]) return true;
        if (ages_[step.atom] != Age::any && is_fresh(n) != (ages_[step.atom] == Age::fresh)) return true;
        if (!step.root_known) slots_[atom.root] = r.in;
        else if (slots_[atom.root] != r.in) return true;
        const ClassId* children = atom.children.size() <= 2 ? &r.a : table_.children(r).data();
        for (std::size_t k = 0; k < atom.children.size(); ++k) {
            if (!step.child_known[k]) slots_[atom.children[k]] = children[k];
            else if (slots_[atom.children[k]] != children[k]) return true;
        }
        for (std::uint32_t g : step.guards)
            if (!allowed(g)) return true;
        atoms_[step.atom] = n;
        return depth + 1 == plan_->size() ? emit() : descend(depth + 1);
    }

    bool descend(std::size_t depth) {
        const PlanStep& step = (*plan_)[depth];
        const Atom& atom = rule_.query().atoms[step.atom];
        const OpId op = ops_[step.atom];
        switch (step.kind) {
        case Step::scan:
            for (NodeId n : index_.all(op)) if (!candidate(depth, n)) return false;
            return true;
        case Step::down: {
            const auto nodes = graph_.nodes(slots_[atom.root]);
            auto it = nodes.begin();
            if (nodes.size() > 8) it = std::partition_point(it, nodes.end(), [&](NodeId n) { return table_.record(n).op < op; });
            for (; it != nodes.end(); ++it) {
                const OpId own = table_.record(*it).op;
                if (own > op) break;
                if (own == op && !candidate(depth, *it)) return false;
            }
            return true;
        }
        case Step::up: {
            bool go_on = true;
            graph_.each_parent(slots_[atom.children[step.via]], [&](NodeId n, std::uint32_t at) {
                if (go_on && at == step.via && table_.record(n).op == op) go_on = candidate(depth, n);
            });
            return go_on;
        }
        case Step::probe: {
            ClassId children[16];
            std::vector<ClassId> many;
            ClassId* at = children;
            if (atom.children.size() > 16) many.resize(atom.children.size()), at = many.data();
            for (std::size_t k = 0; k < atom.children.size(); ++k) at[k] = slots_[atom.children[k]];
            const NodeId n = table_.find(op, {at, atom.children.size()});
            return n == none || candidate(depth, n);
        }
        }
        return true;
    }

    bool emit() {
        if (drop_old_ && std::none_of(atoms_.begin(), atoms_.end(), [&](NodeId n) { return is_fresh(n); })) return true;
        out_.append(atoms_);
        if ((out_.size() - out_before_) / atoms_.size() > budget_.matches) return end_ = SearchEnd::too_many, false;
        return true;
    }

    bool allowed(std::uint32_t g) {
        const Guard& guard = rule_.rule().guards[g];
        std::vector<ClassId> args;
        for (std::uint32_t s : rule_.guard_slots()[g]) args.push_back(slots_[s]);
        return guard.test(graph_, args).allowed;
    }

    bool within_budget() {
        if (std::chrono::steady_clock::now() > budget_.deadline) return end_ = SearchEnd::out_of_time, false;
        if (budget_.bytes != ~std::size_t{0} && graph_.bytes() + out_.bytes() > budget_.bytes) return end_ = SearchEnd::out_of_memory, false;
        return true;
    }

    const EGraph& graph_;
    const NodeTable& table_;
    SearchIndex& index_;
    const CompiledRewrite& rule_;
    const std::uint32_t since_;
    const Budget& budget_;
    Flat<NodeId>& out_;
    std::size_t out_before_;
    std::vector<OpId> ops_;
    std::vector<ClassId> slots_;
    std::vector<NodeId> atoms_;
    std::vector<Age> ages_;
    const std::vector<PlanStep>* plan_ = nullptr;
    const std::vector<bool>* marked_ = nullptr;
    bool reads_facts_ = false, drop_old_ = false;
    std::size_t tried_ = 0;
    SearchEnd end_ = SearchEnd::complete;
};

// A bare variable matches every class; the class's first node stands for it.
SearchEnd search_bare(const EGraph& graph, const CompiledRewrite& rule, const Budget& budget, Flat<NodeId>& out) {
    std::size_t count = 0;
    for (ClassId c : graph.classes()) {
        bool good = true;
        for (std::uint32_t g : rule.plan(0)[0].guards) {
            const std::vector<ClassId> args(rule.guard_slots()[g].size(), c);
            good = good && rule.rule().guards[g].test(graph, args).allowed;
        }
        if (!good) continue;
        out.push_back(graph.nodes(c)[0]);
        if (++count > budget.matches) return SearchEnd::too_many;
    }
    return SearchEnd::complete;
}

}  // namespace

std::span<const NodeId> SearchIndex::all(OpId op) {
    if (!all_known_) {
        for (NodeId n = 0; n < graph_.node_bound(); ++n)
            if (!graph_.dead(n)) all_.nodes.push_back(n);
        group(all_.nodes, all_);
        all_known_ = true;
    }
    return all_.of(op);
}

const SearchIndex::Fresh& SearchIndex::fresh(std::uint32_t since, bool with_facts) {
    const auto [it, made] = fresh_.try_emplace({since, with_facts});
    Fresh& out = it->second;
    if (!made) return out;
    if (with_facts) {
        out.marked.resize(graph_.node_bound());
        for (NodeId n = 0; n < graph_.node_bound(); ++n) {
            if (graph_.dead(n)) continue;
            const NodeTable::Record& r = graph_.table().record(n);
            bool changed = graph_.stamp(n) > since || graph_.class_stamp(r.in) > since;
            for (ClassId c : graph_.table().children(r)) changed |= graph_.class_stamp(c) > since;
            if (changed) out.marked[n] = true, out.nodes.push_back(n);
        }
    } else {
        out.nodes = graph_.touched_since(since);
    }
    group(out.nodes, out);
    return out;
}

void SearchIndex::group(std::vector<NodeId>& nodes, Fresh& out) const {
    const std::size_t ops = graph_.table().op_count();
    out.first.assign(ops + 1, 0);
    for (NodeId n : nodes) ++out.first[graph_.table().record(n).op + 1];
    std::partial_sum(out.first.begin(), out.first.end(), out.first.begin());
    std::vector<std::uint32_t> at(out.first.begin(), out.first.end() - 1);
    std::vector<NodeId> sorted(nodes.size());
    for (NodeId n : nodes) sorted[at[graph_.table().record(n).op]++] = n;
    out.nodes.swap(sorted);
}

SearchEnd search(const EGraph& graph, SearchIndex& index, const CompiledRewrite& rule, std::uint32_t since, SearchMode mode,
                 const Budget& budget, Flat<NodeId>& matches) {
    if (rule.bare()) return search_bare(graph, rule, budget, matches);
    for (const Atom& a : rule.query().atoms)   // an operator that no node has: nothing to find
        if (graph.table().find_op(a.op, static_cast<std::uint32_t>(a.children.size())) == none) return SearchEnd::complete;
    if (mode == SearchMode::incremental) return Machine(graph, index, rule, since, budget, matches).incremental();
    if (mode == SearchMode::plain) return Machine(graph, index, rule, since, budget, matches).plain();
    Flat<NodeId> one, other;
    const SearchEnd end = Machine(graph, index, rule, since, budget, one).incremental();
    const SearchEnd plain_end = Machine(graph, index, rule, since, budget, other).plain();
    require(end == plain_end || (end != SearchEnd::complete && end != SearchEnd::too_many), "incremental and plain search end differently");
    if (end == SearchEnd::complete) {
        Flat<NodeId> sorted = one;
        sort_matches(sorted, rule.query().atoms.size());
        sort_matches(other, rule.query().atoms.size());
        require(std::ranges::equal(sorted.span(), other.span()), "incremental and plain search find different matches");
    }
    matches.append(one.span());
    return end;
}

void sort_matches(Flat<NodeId>& matches, std::size_t width) {
    const std::size_t count = matches.size() / width;
    std::vector<std::uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](std::uint32_t x, std::uint32_t y) {
        return std::lexicographical_compare(matches.data() + x * width, matches.data() + (x + 1) * width, matches.data() + y * width,
                                            matches.data() + (y + 1) * width);
    });
    Flat<NodeId> sorted;
    for (std::uint32_t i : order) sorted.append({matches.data() + i * width, width});
    matches.swap(sorted);
}

}  // namespace loopegg
