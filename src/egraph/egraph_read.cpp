// The reading side of EGraph: look-ups, the index of classes, small extraction for messages.
#include <algorithm>
#include <limits>

#include "egraph/egraph.hpp"

namespace loopegg {

std::optional<ClassId> EGraph::lookup(const Term& term) const {
    std::vector<ClassId> children;
    for (const Term& t : term.children()) {
        const auto c = lookup(t);
        if (!c) return std::nullopt;
        children.push_back(*c);
    }
    return lookup(term.op(), children);
}

std::optional<ClassId> EGraph::lookup(Symbol symbol, std::span<const ClassId> children) const {
    const OpId op = table_.find_op(symbol, static_cast<std::uint32_t>(children.size()));
    if (op == none) return std::nullopt;
    std::vector<ClassId> canonical;
    for (ClassId c : children) canonical.push_back(find(c));
    const NodeId n = table_.find(op, canonical);
    if (n == none) return std::nullopt;
    return find(table_.record(n).in);
}

std::span<const ClassId> EGraph::classes() const {
    if (!canonical_fresh_) {
        canonical_.clear();
        for (ClassId c = 0; c < union_.size(); ++c)
            if (union_[c] == c) canonical_.push_back(c);
        canonical_fresh_ = true;
    }
    return canonical_.span();
}

std::span<const NodeId> EGraph::nodes(ClassId c) const {
    if (!index_ready_) make_index_ready();
    const Class& in = classes_[c];
    if (in.index_count == none) index_class(c);
    return {index_.data() + in.index_first, in.index_count};
}

// What was read stays where it is until the e-graph changes: whatever else is read, the index has room for it.
void EGraph::make_index_ready() const {
    // Ranges that were replaced leave holes; when half of the index is holes, it is begun again.
    if (index_.size() > 2 * live_nodes_ + 1024) {
        index_.clear();
        for (const Class& c : classes_) c.index_count = none;
    }
    index_.reserve(index_.size() + live_nodes_);
    index_ready_ = true;
}

void EGraph::index_class(ClassId c) const {
    const Class& in = classes_[c];
    in.index_first = static_cast<std::uint32_t>(index_.size());
    in.index_count = 0;
    if (union_[c] != c) return;
    NodeId n = in.last_node;
    do {
        n = next_in_class_[n];
        if (!table_.dead(n)) index_.push_back(n), ++in.index_count;
    } while (n != in.last_node);
    if (in.index_count < 2) return;
    std::sort(index_.begin() + in.index_first, index_.end(), [&](NodeId x, NodeId y) {
        const NodeTable::Record &p = table_.record(x), &q = table_.record(y);
        if (p.op != q.op) return p.op < q.op;
        if (table_.arity(p) > 2) return std::ranges::lexicographical_compare(table_.children(p), table_.children(q));
        return p.a != q.a ? p.a < q.a : p.b < q.b;
    });
}

std::vector<NodeId> EGraph::parents(ClassId c) const {
    std::vector<NodeId> out;
    each_parent(find(c), [&](NodeId n, std::uint32_t) {
        if (!table_.dead(n)) out.push_back(n);
    });
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

std::optional<std::int64_t> EGraph::integer(ClassId c) const {
    const Class& in = classes_[find(c)];
    NodeId n = in.last_node;
    do {
        const NodeTable::Record& r = table_.record(n);
        if (table_.arity(r) == 0)
            if (auto value = integer_of(table_.op(r.op & ~NodeTable::dead_bit).symbol)) return value;
        n = next_in_class_[n];
    } while (n != in.last_node);
    return std::nullopt;
}

Term EGraph::smallest_term(ClassId wanted) const {
    // Only what the class reaches is looked at, so that a message about a small part of a large e-graph stays cheap.
    std::vector<ClassId> reached{find(wanted)};
    std::unordered_map<ClassId, std::size_t> at{{reached[0], 0}};
    auto members = [&](ClassId c, auto&& f) {
        NodeId n = classes_[c].last_node;
        do {
            n = next_in_class_[n];
            if (!table_.dead(n)) f(n);
        } while (n != classes_[c].last_node);
    };
    for (std::size_t i = 0; i < reached.size(); ++i)
        members(reached[i], [&](NodeId n) {
            for (ClassId k : table_.children(n))
                if (at.try_emplace(find(k), reached.size()).second) reached.push_back(find(k));
        });
    constexpr std::uint64_t unknown = std::numeric_limits<std::uint64_t>::max();
    std::vector<std::uint64_t> cost(reached.size(), unknown);
    std::vector<NodeId> best(reached.size(), none);
    for (bool again = true; again;) {
        again = false;
        for (std::size_t i = reached.size(); i-- > 0;)
            members(reached[i], [&](NodeId n) {
                std::uint64_t sum = 1;
                for (ClassId k : table_.children(n)) {
                    const std::uint64_t part = cost[at.at(find(k))];
                    if (part == unknown) return;
                    sum = std::min(sum + part, unknown - 1);
                }
                if (sum < cost[i]) cost[i] = sum, best[i] = n, again = true;
            });
    }
    std::vector<Term> terms(reached.size());
    auto build = [&](auto&& self, ClassId c) -> Term {
        const std::size_t i = at.at(find(c));
        if (!terms[i]) {
            std::vector<Term> children;
            for (ClassId k : table_.children(best[i])) children.push_back(self(self, k));
            terms[i] = Term(table_.op(table_.record(best[i]).op).symbol, std::move(children));
        }
        return terms[i];
    };
    return build(build, wanted);
}

std::size_t EGraph::bytes() const {
    return table_.bytes() + union_.bytes() + classes_.bytes() + next_in_class_.bytes() + parent_next_.bytes() + pool_next_.bytes() + pool_owner_.bytes() +
           stamps_.bytes() + touched_.bytes() + class_stamps_.bytes() + index_.bytes() + canonical_.bytes() + (forest_ ? forest_->bytes() : 0);
}

}  // namespace loopegg
