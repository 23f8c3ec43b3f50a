#include "egraph/node_table.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace loopegg {

OpId NodeTable::op_id(Symbol symbol, std::uint32_t arity) {
    const auto [it, fresh] = op_ids_.try_emplace(std::uint64_t{symbol.id()} << 32 | arity, static_cast<OpId>(operators_.size()));
    if (fresh) operators_.push_back({symbol, arity});
    return it->second;
}

OpId NodeTable::find_op(Symbol symbol, std::uint32_t arity) const {
    const auto it = op_ids_.find(std::uint64_t{symbol.id()} << 32 | arity);
    return it == op_ids_.end() ? none : it->second;
}

NodeId NodeTable::append(OpId op, std::span<const ClassId> children, ClassId in, std::uint32_t hash) {
    const NodeId n = static_cast<NodeId>(records_.size());
    require(n < 0x7fffffffu, "more than 2^31 e-nodes");
    Record r{op, in, none, none};
    if (children.size() <= 2) {
        if (children.size() > 0) r.a = children[0];
        if (children.size() > 1) r.b = children[1];
    } else {
        r.a = static_cast<std::uint32_t>(pool_.size());
        pool_.append(children);
    }
    records_.push_back(r);
    insert(n, hash);
    return n;
}

void NodeTable::insert(NodeId n, std::uint32_t hash) {
    if (used_ * 10ull >= slots_.size() * 7ull) grow();
    place({hash, n});
    ++used_;
}

void NodeTable::place(Slot slot) {
    const std::uint32_t mask = static_cast<std::uint32_t>(slots_.size()) - 1;
    std::uint32_t i = slot.hash >> shift_;
    while (slots_[i].node != none) i = (i + 1) & mask;
    slots_[i] = slot;
}

void NodeTable::grow() {
    Flat<Slot> old;
    old.swap(slots_);
    const std::size_t live = used_ - std::min(used_, stale_);
    const std::size_t size = std::max<std::size_t>(64, live * 2 >= old.size() ? old.size() * 2 : old.size());
    slots_.resize(size, {0, none});
    shift_ = 32 - static_cast<std::uint32_t>(__builtin_ctzll(size));
    // An entry that no longer represents its node only fills the table; a few of them cost less than reading every node.
    const bool sweep = stale_ * 8ull > used_ || size == old.size();
    if (sweep) used_ = stale_ = 0;
    for (const Slot& s : old) {
        if (s.node == none) continue;
        if (sweep) {
            const Record& r = records_[s.node];
            if ((r.op & dead_bit) || hash(r.op, children(r)) != s.hash) continue;
            ++used_;
        }
        place(s);
    }
}

}  // namespace loopegg
