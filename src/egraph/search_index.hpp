// What changed in an e-graph, epoch by epoch and by operator: where an incremental search begins.
#pragma once
#include <map>
#include <span>
#include <vector>

#include "egraph/egraph.hpp"

namespace loopegg {

// Nodes by operator: one list after another.
struct NodesByOp {
    std::vector<std::uint32_t> first;  // by operator, into nodes
    std::vector<NodeId> nodes;
    std::span<const NodeId> of(OpId op) const {
        return op + 1 < first.size() ? std::span(nodes).subspan(first[op], first[op + 1] - first[op]) : std::span<const NodeId>{};
    }
};

// What a search looks into at one moment of an e-graph. The index keeps from one moment to the next what changed in each epoch.
class SearchIndex {
public:
    explicit SearchIndex(const EGraph& graph) : graph_(graph) {}
    // Call this before a search when the e-graph has changed. No rule will ask for what changed in `seen` or before.
    void update(std::uint32_t seen);

    std::span<const NodeId> all(OpId op);
    // The nodes of an operator that changed after one epoch and up to another, as one list for each epoch. The caller takes those nodes of a
    // list whose stamp is that epoch and which still have the operator.
    struct Touched {
        std::uint32_t epoch;
        std::span<const NodeId> nodes;
    };
    void touched(std::uint32_t since, std::uint32_t upto, OpId op, std::vector<Touched>& out);
    // The same for rules that read facts: it also holds nodes of which a class (their own or a child's) changed its facts.
    struct WithFacts {
        NodesByOp by_op;
        std::vector<bool> marked;
    };
    const WithFacts& with_facts(std::uint32_t since);

private:
    NodesByOp group(std::span<const NodeId> nodes) const;

    const EGraph& graph_;
    std::uint64_t pops_ = 0;
    NodesByOp all_;
    bool all_known_ = false;
    std::map<std::uint32_t, NodesByOp> epochs_;
    std::map<std::uint32_t, WithFacts> with_facts_;
};

}  // namespace loopegg
