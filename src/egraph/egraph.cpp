#include "egraph/egraph.hpp"

#include <algorithm>

#include "egraph/analysis.hpp"
#include "egraph/explain.hpp"

namespace loopegg {

EGraph::EGraph(Options options) {
    if (options.proofs) forest_.emplace();
}
EGraph::EGraph(EGraph&&) noexcept = default;
EGraph& EGraph::operator=(EGraph&&) noexcept = default;
EGraph::~EGraph() = default;

ClassId EGraph::add(const Term& term) {
    std::vector<ClassId> children;
    for (const Term& c : term.children()) children.push_back(add(c));
    return add(term.op(), children);
}

ClassId EGraph::add(Symbol op, std::span<const ClassId> children) {
    std::vector<ClassId> canonical;
    for (ClassId c : children) canonical.push_back(find(c));
    return find(table_.record(find_or_make(op_id(op, static_cast<std::uint32_t>(children.size())), canonical)).in);
}

NodeId EGraph::find_or_make(OpId op, std::span<const ClassId> children) {
    const std::uint32_t hash = NodeTable::hash(op, children);
    const NodeId n = table_.find(op, children, hash);
    return n != none ? n : make_node(op, children, hash);
}

NodeId EGraph::make_node(OpId op, std::span<const ClassId> children, std::uint32_t hash) {
    const ClassId c = static_cast<ClassId>(union_.size());
    const NodeId n = table_.append(op, children, c, hash);
    new_class(n);
    enter_node(n, op, children);
    next_in_class_[n] = n;
    for (std::uint32_t i = 0; i < analyses_.size(); ++i) {
        analyses_[i]->make(*this, c, node(n));
        unmodified_.push_back({c, i});
    }
    return n;
}

NodeId EGraph::make_node_in(OpId op, std::span<const ClassId> children, std::uint32_t hash, ClassId in) {
    const NodeId n = table_.append(op, children, in, hash);
    enter_node(n, op, children);
    Class& c = classes_[in];
    c.node_ops |= op_bit(op);
    next_in_class_[n] = next_in_class_[c.last_node];
    next_in_class_[c.last_node] = n;
    c.last_node = n;
    ++c.weight;
    class_gained(in);
    return n;
}

ClassId EGraph::new_class(NodeId founder) {
    const ClassId c = static_cast<ClassId>(union_.size());
    union_.push_back(c);
    classes_.push_back({founder, none, none, 1, op_bit(table_.record(founder).op), 0, 0, none});
    canonical_fresh_ = index_ready_ = false;
    ++live_classes_;
    if (!class_stamps_.empty()) class_stamps_.push_back(epoch_);
    if (forest_) forest_->add_class(founder);
    return c;
}

void EGraph::enter_node(NodeId n, OpId op, std::span<const ClassId> children) {
    ++live_nodes_;
    next_in_class_.push_back(none);
    stamps_.push_back(epoch_);
    touched_.push_back(n);
    std::uint32_t* slots = parent_next_.extend(2);
    slots[0] = slots[1] = none;
    if (children.size() <= 2) {
        for (std::uint32_t k = 0; k < children.size(); ++k) link_parent(children[k], 2 * n + k, op);
    } else {
        const std::uint32_t first = table_.record(n).a;
        pool_next_.resize(first + children.size(), none);
        pool_owner_.resize(first + children.size(), n);
        for (std::uint32_t k = 0; k < children.size(); ++k) link_parent(children[k], (first + k) | pool_slot, op);
    }
    if (forest_) forest_->add_node(n, children);
}

void EGraph::link_parent(ClassId c, std::uint32_t slot, OpId op) {
    Class& in = classes_[c];
    if (in.last_parent == none)
        in.first_parent = slot;
    else if (in.last_parent & pool_slot)
        pool_next_[in.last_parent & ~pool_slot] = slot;
    else
        parent_next_[in.last_parent] = slot;
    in.last_parent = slot;
    in.parent_ops |= op_bit(op);
    ++in.weight;
}

void EGraph::class_gained(ClassId c) {
    classes_[c].index_count = none;
    index_ready_ = false;
    if (watch_nodes_) class_stamps_[c] = epoch_;
}

bool EGraph::merge(ClassId a, ClassId b, std::string_view why) {
    if (find(a) == find(b)) return false;
    Reason reason = congruence;
    if (forest_) {
        const std::uint32_t words[] = {ProofForest::asserted, Symbol(why).id()};
        reason = forest_->note(words);
    }
    return unite(a, b, node_of(a), node_of(b), reason);
}

bool EGraph::merge_nodes(NodeId left, NodeId right, Reason reason) { return unite(table_.record(left).in, table_.record(right).in, left, right, reason); }

bool EGraph::unite(ClassId a, ClassId b, NodeId left, NodeId right, Reason reason) {
    a = find(a), b = find(b);
    if (a == b) return false;
    for (const auto& analysis : analyses_)
        if (auto why = analysis->conflict(*this, a, b)) refuse(*analysis, left, right, reason, *why);
    const bool keep_a = classes_[a].weight != classes_[b].weight ? classes_[a].weight > classes_[b].weight : a < b;
    const ClassId kept = keep_a ? a : b, lost = keep_a ? b : a;
    if (forest_) keep_a ? forest_->link(right, left, reason ^ ProofForest::backward) : forest_->link(left, right, reason);
    union_[lost] = kept;
    --live_classes_;
    canonical_fresh_ = false;
    Class& k = classes_[kept];
    const Class& l = classes_[lost];
    NodeId n = l.last_node;
    do {
        table_.record(n).in = kept;
        touch(n);
        n = next_in_class_[n];
    } while (n != l.last_node);
    std::swap(next_in_class_[k.last_node], next_in_class_[l.last_node]);
    k.last_node = l.last_node;
    if (l.first_parent != none) {
        if (k.last_parent == none)
            k.first_parent = l.first_parent;
        else if (k.last_parent & pool_slot)
            pool_next_[k.last_parent & ~pool_slot] = l.first_parent;
        else
            parent_next_[k.last_parent] = l.first_parent;
        k.last_parent = l.last_parent;
        pending_.push_back(lost);
    }
    k.weight += l.weight;
    k.node_ops |= l.node_ops;
    k.parent_ops |= l.parent_ops;
    class_gained(kept);
    for (std::uint32_t i = 0; i < analyses_.size(); ++i) {
        const Analysis::Joined joined = analyses_[i]->join(*this, kept, lost);
        // Parents of either side see a changed fact; both lists are one by now, so the whole class is notified.
        if (joined.kept_changed || joined.lost_changed) fact_changed(kept, i);
    }
    return true;
}

void EGraph::fact_changed(ClassId c, std::uint32_t analysis) {
    unmodified_.push_back({c, analysis});
    each_parent(c, [&](NodeId n, std::uint32_t) {
        if (!table_.dead(n)) stale_facts_.push_back({n, analysis});
    });
    if (!class_stamps_.empty()) class_stamps_[c] = epoch_;
}

void EGraph::refine_parents() {
    for (std::size_t i = 0; i < stale_facts_.size(); ++i) {
        const StaleFact s = stale_facts_[i];
        if (table_.dead(s.node)) continue;
        const ClassId in = find(table_.record(s.node).in);
        if (analyses_[s.analysis]->refine(*this, in, node(s.node))) fact_changed(in, s.analysis);
        if (!pending_.empty()) {
            stale_facts_.erase(stale_facts_.begin(), stale_facts_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
            return;
        }
    }
    stale_facts_.clear();
}

void EGraph::rebuild() {
    while (!clean()) {
        for (std::size_t i = 0; i < pending_.size(); ++i) repair(pending_[i]);
        pending_.clear();
        refine_parents();
        if (!pending_.empty() || !stale_facts_.empty()) continue;
        std::vector<Unmodified> changed;
        changed.swap(unmodified_);
        for (const Unmodified& u : changed) analyses_[u.analysis]->modify(*this, find(u.in));
    }
    key_edges();
}

// The parents that the lost class brought get canonical children; those that become equal to another node are merged with it.
void EGraph::repair(ClassId lost) {
    const std::uint32_t end = classes_[lost].last_parent;
    for (std::uint32_t s = classes_[lost].first_parent;;) {
        const NodeId n = s & pool_slot ? pool_owner_[s & ~pool_slot] : s >> 1;
        if (!table_.dead(n)) {
            bool changed = false;
            const std::span<ClassId> children = table_.children(n);
            for (ClassId& c : children) {
                const ClassId root = find(c);
                changed |= root != c;
                c = root;
            }
            if (changed) {
                NodeTable::Record& r = table_.record(n);
                class_gained(find(r.in));
                table_.leave();
                const std::uint32_t hash = NodeTable::hash(r.op, children);
                const NodeId same = table_.find(r.op, children, hash);
                if (same != none) {
                    r.op |= NodeTable::dead_bit;
                    --live_nodes_;
                    merge_nodes(n, same, congruence);
                } else {
                    table_.insert(n, hash);
                    touch(n);
                }
            }
        }
        if (s == end) break;
        s = s & pool_slot ? pool_next_[s & ~pool_slot] : parent_next_[s];
    }
}

void EGraph::attach(std::shared_ptr<Analysis> analysis) {
    rebuild();
    const std::uint32_t i = static_cast<std::uint32_t>(analyses_.size());
    analyses_.push_back(std::move(analysis));
    // Classes may be cyclic, so facts are made from each class's founding term upwards: oldest nodes first.
    std::vector<bool> made(union_.size());
    for (NodeId n = 0; n < table_.size(); ++n) {
        const ClassId c = find(table_.record(n).in);
        if (!made[c]) {
            const auto children = table_.children(n);
            if (!std::all_of(children.begin(), children.end(), [&](ClassId k) { return made[find(k)]; })) continue;
            analyses_[i]->make(*this, c, node(n));
            made[c] = true;
        }
    }
    for (bool again = true; again;) {  // classes whose oldest node waits for another class
        again = false;
        for (ClassId c : classes()) {
            for (NodeId n : nodes(c)) {
                if (made[c]) break;
                const auto children = table_.children(n);
                if (!std::all_of(children.begin(), children.end(), [&](ClassId k) { return made[k]; })) continue;
                analyses_[i]->make(*this, c, node(n));
                made[c] = again = true;
            }
        }
    }
    for (ClassId c : classes()) {
        for (NodeId n : nodes(c)) stale_facts_.push_back({n, i});
        unmodified_.push_back({c, i});
    }
    rebuild();
}

void EGraph::push() {
    kept_.push_back(std::make_unique<EGraphData>(static_cast<const EGraphData&>(*this)));
    for (const auto& a : analyses_) a->push();
}

void EGraph::pop() {
    require(!kept_.empty(), "pop without push");
    static_cast<EGraphData&>(*this) = std::move(*kept_.back());
    kept_.pop_back();
    index_ready_ = false;
    ++pops_;
    for (const auto& a : analyses_) a->pop();
}

std::uint32_t EGraph::register_rule(std::shared_ptr<const CompiledRewrite> rule) {
    for (std::uint32_t i = 0; i < rules_.size(); ++i)
        if (rules_[i] == rule) return i;
    rules_.push_back(std::move(rule));
    return static_cast<std::uint32_t>(rules_.size()) - 1;
}

std::uint32_t EGraph::next_epoch() {
    touched_begin_.push_back(touched_.size());
    class_begin_.push_back(static_cast<ClassId>(union_.size()));
    return epoch_++;
}

std::span<const NodeId> EGraph::touched_in(std::uint32_t epoch) const {
    const std::size_t begin = touched_begin_[epoch], end = epoch < epoch_ ? touched_begin_[epoch + 1] : touched_.size();
    return touched_.span().subspan(begin, end - begin);
}

void EGraph::watch_classes(bool nodes_too) {
    if (class_stamps_.empty() || (nodes_too && !watch_nodes_)) {
        class_stamps_.clear();
        class_stamps_.resize(union_.size(), epoch_);
    }
    watch_nodes_ |= nodes_too;
}

void EGraph::refuse(const Analysis& analysis, NodeId left, NodeId right, Reason reason, const std::string& why) {
    const ClassId a = find(table_.record(left).in), b = find(table_.record(right).in);
    const std::string rule = current_rule_.text();
    const Term ta = smallest_term(a), tb = smallest_term(b);
    std::string proof;
    if (forest_) {
        // The forest may say that they are equal, for that is what the rules say; the classes stay apart.
        forest_->link(left, right, reason);
        proof = to_string(minimise(explain(*this, ta, tb), *this));
    }
    throw InvariantBroken(std::string(analysis.name()), rule, ta, tb, why + missed_by_judge(analysis), std::move(proof));
}

}  // namespace loopegg
