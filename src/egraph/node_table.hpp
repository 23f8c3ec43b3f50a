// The e-nodes of an e-graph in flat arrays, and the hash table that keeps equal ones one (hash-consing).
//
// A node is 16 bytes: operator, class, and two children in place; more children are in a pool. The table holds (hash, node)
// pairs, indexed by the high bits of the hash, so that doubling it moves entries in order. An entry whose node has changed
// its children since is never found again, because look-ups use canonical children alone; the entry is dropped at the next doubling.
#pragma once
#include <unordered_map>
#include <vector>

#include "egraph/flat.hpp"
#include "egraph/ids.hpp"

namespace loopegg {

struct OperatorEntry {
    Symbol symbol;
    std::uint32_t arity;
};

class NodeTable {
public:
    static constexpr std::uint32_t dead_bit = 0x80000000u;  // on Record::op, of a node that became equal to an older one

    struct Record {
        OpId op;
        ClassId in;
        std::uint32_t a, b;  // the children when at most two, else a = their place in the pool
    };

    OpId op_id(Symbol symbol, std::uint32_t arity);          // makes an id when the operator is new
    OpId find_op(Symbol symbol, std::uint32_t arity) const;  // none when no node has used it
    const OperatorEntry& op(OpId id) const { return operators_[id]; }
    std::size_t op_count() const { return operators_.size(); }

    std::size_t size() const { return records_.size(); }  // dead ones too
    Record& record(NodeId n) { return records_[n]; }
    const Record& record(NodeId n) const { return records_[n]; }
    bool dead(NodeId n) const { return records_[n].op & dead_bit; }
    std::uint32_t arity(const Record& r) const { return operators_[r.op & ~dead_bit].arity; }
    std::span<const ClassId> children(NodeId n) const { return children(records_[n]); }
    std::span<const ClassId> children(const Record& r) const {
        const std::uint32_t k = arity(r);
        return {k <= 2 ? &r.a : pool_.data() + r.a, k};
    }
    std::span<ClassId> children(NodeId n) {
        const auto view = std::as_const(*this).children(n);
        return {const_cast<ClassId*>(view.data()), view.size()};
    }

    static std::uint32_t hash(OpId op, std::span<const ClassId> children) {
        std::uint64_t h = (op + 1) * 0x9E3779B97F4A7C15ull;
        for (ClassId c : children) h = (((h >> 29) ^ h) + c + 1) * 0xbf58476d1ce4e5b9ull;
        return static_cast<std::uint32_t>((h ^ (h >> 27)) * 0x94d049bb133111ebull >> 32);
    }
    void prefetch(std::uint32_t hash) const {
        if (!slots_.empty()) __builtin_prefetch(&slots_[hash >> shift_]);
    }

    NodeId find(OpId op, std::span<const ClassId> children, std::uint32_t hash) const;  // none when absent
    NodeId find(OpId op, std::span<const ClassId> children) const { return find(op, children, hash(op, children)); }
    NodeId append(OpId op, std::span<const ClassId> children, ClassId in, std::uint32_t hash);  // known to be absent
    void insert(NodeId n, std::uint32_t hash);                                                  // known to be absent
    void leave() { ++stale_; }  // a node dies, or is about to be inserted with other children: its entry is stale

    std::size_t bytes() const { return records_.bytes() + pool_.bytes() + slots_.bytes(); }

private:
    struct Slot {
        std::uint32_t hash;
        NodeId node;
    };
    void grow();
    void place(Slot slot);

    Flat<Record> records_;
    Flat<ClassId> pool_;
    Flat<Slot> slots_;
    std::uint32_t used_ = 0, stale_ = 0, shift_ = 32;
    std::vector<OperatorEntry> operators_;
    std::unordered_map<std::uint64_t, OpId> op_ids_;
};

inline NodeId NodeTable::find(OpId op, std::span<const ClassId> children, std::uint32_t hash) const {
    if (slots_.empty()) return none;
    const std::uint32_t mask = static_cast<std::uint32_t>(slots_.size()) - 1;
    for (std::uint32_t i = hash >> shift_;; i = (i + 1) & mask) {
        const Slot s = slots_[i];
        if (s.node == none) return none;
        if (s.hash != hash) continue;
        const Record& r = records_[s.node];
        if (r.op != op) continue;
        const ClassId* own = children.size() <= 2 ? &r.a : pool_.data() + r.a;
        bool same = true;
        for (std::size_t k = 0; k < children.size(); ++k) same &= own[k] == children[k];
        if (same) return s.node;
    }
}

}  // namespace loopegg
