// The e-graph: terms and what is known to be equal among them, stored once.
//
// The terms may be of any language: operators are Symbols, and numbers are leaves. Classes are numbered, and find() gives the canonical
// number. After merges, call rebuild() before reading: rebuild() makes parents equal whose children are equal. The e-graph is
// deterministic: the same calls give the same numbers.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/term.hpp"
#include "egraph/analysis.hpp"
#include "egraph/egraph_data.hpp"

namespace loopegg {

class EGraph : private EGraphData {
public:
    struct Options {
        bool proofs = false;  // keep the reason of every merge, so that explain() can answer
    };
    EGraph() : EGraph(Options{}) {}
    explicit EGraph(Options options);
    EGraph(EGraph&&) noexcept;
    EGraph& operator=(EGraph&&) noexcept;
    ~EGraph();

    // --- building ---------------------------------------------------------------------------------------------------------
    ClassId add(const Term& term);
    ClassId add(Symbol op, std::span<const ClassId> children = {});
    // States that two classes are equal. Returns true when that was news. `why` is kept for proofs.
    bool merge(ClassId a, ClassId b, std::string_view why = "asserted");
    void rebuild();
    // Makes facts for the classes that exist already. Attach an analysis before rules run.
    void attach(std::shared_ptr<Analysis> analysis);

    // --- reading (after rebuild) --------------------------------------------------------------------------------------------
    ClassId find(ClassId c) const {
        while (union_[c] != c) c = union_[c] = union_[union_[c]];
        return c;
    }
    bool equal(ClassId a, ClassId b) const { return find(a) == find(b); }
    std::optional<ClassId> lookup(const Term& term) const;  // the class of a term that is represented
    std::optional<ClassId> lookup(Symbol op, std::span<const ClassId> children = {}) const;

    std::size_t node_count() const { return live_nodes_; }  // distinct e-nodes, each counted once
    std::size_t class_count() const { return live_classes_; }
    std::size_t class_bound() const { return union_.size(); }                                       // every ClassId ever given is below
    std::size_t node_bound() const { return table_.size(); }                                        // every NodeId ever given is below
    bool clean() const { return pending_.empty() && stale_facts_.empty() && unmodified_.empty(); }  // rebuild() has nothing to do

    std::span<const ClassId> classes() const;        // the canonical ids, ascending
    std::span<const NodeId> nodes(ClassId c) const;  // the e-nodes of a class, by operator (in order of first use), then children
    NodeView node(NodeId n) const {
        const NodeTable::Record& r = table_.record(n);
        return {table_.op(r.op & ~NodeTable::dead_bit).symbol, table_.children(r), find(r.in)};
    }
    bool dead(NodeId n) const { return table_.dead(n); }   // the node became equal to another one, and nodes() leaves it out
    std::vector<NodeId> parents(ClassId c) const;          // the e-nodes that have the class as a child, ascending
    std::optional<std::int64_t> integer(ClassId c) const;  // the number that is a leaf of the class, if one is
    Term smallest_term(ClassId c) const;                   // some term of fewest nodes; for messages and small work
    std::size_t bytes() const;                             // what the e-graph holds in memory
    bool proofs() const { return forest_.has_value(); }

    // --- variant edges ------------------------------------------------------------------------------------------------------
    // Adds an edge unless the same edge (rule, ends, substitution) is there. Returns true when the edge was news.
    bool add_edge(Edge edge);
    bool has_edge(const Edge& edge) const;
    std::span<const Edge> edges() const { return edges_; }

    // --- states -------------------------------------------------------------------------------------------------------------
    void push();  // keeps the whole state, facts and edges included ...
    void pop();   // ... and goes back to the last kept
    std::size_t depth() const { return kept_.size(); }
    std::uint64_t pops() const { return pops_; }  // what was known about changes before a pop is void

    // --- for the searching and applying of rules ------------------------------------------------------------------------------
    const NodeTable& table() const { return table_; }
    OpId op_id(Symbol symbol, std::uint32_t arity) { return table_.op_id(symbol, arity); }
    bool has_analyses() const { return !analyses_.empty(); }
    // Adds a node that is known to be absent, with canonical children, in a class of its own or inside `in`.
    NodeId make_node(OpId op, std::span<const ClassId> children, std::uint32_t hash);
    NodeId make_node_in(OpId op, std::span<const ClassId> children, std::uint32_t hash, ClassId in);
    NodeId find_or_make(OpId op, std::span<const ClassId> children);
    // Merges the classes of two nodes. The reason says why the term of `left` equals the term of `right`. Returns true when the merge was news.
    bool merge_nodes(NodeId left, NodeId right, Reason reason);
    // A node that represents the class id in proofs (any node of it when proofs are off).
    NodeId node_of(ClassId c) const { return forest_ ? forest_->founder(c) : classes_[c].last_node; }
    bool linked(NodeId x, NodeId y) const { return forest_ && forest_->linked(x, y); }  // a proof that they are equal is known
    ProofForest* forest() { return forest_ ? &*forest_ : nullptr; }
    const ProofForest* forest() const { return forest_ ? &*forest_ : nullptr; }
    std::uint32_t register_rule(std::shared_ptr<const CompiledRewrite> rule);  // its number in proofs
    const std::vector<std::shared_ptr<const CompiledRewrite>>& rules() const { return rules_; }
    void set_current_rule(Symbol rule) { current_rule_ = rule; }  // named when an invariant breaks
    Symbol current_rule() const { return current_rule_; }

    // Nodes are stamped with the epoch in which they last changed: made, or a child or their class replaced by a merge.
    std::uint32_t epoch() const { return epoch_; }
    std::uint32_t next_epoch();  // begins an epoch; returns the one that ended
    std::uint32_t stamp(NodeId n) const { return stamps_[n]; }
    std::span<const NodeId> touched_in(std::uint32_t epoch) const;                         // the nodes that changed in an epoch; some may be dead
    std::size_t class_bound_at(std::uint32_t epoch) const { return class_begin_[epoch]; }  // class_bound() when the epoch began
    // Classes are stamped when their facts change and, if wanted, when they gain nodes. Stamps are kept only from this call on.
    void watch_classes(bool nodes_too);
    std::uint32_t class_stamp(ClassId c) const { return class_stamps_[c]; }
    std::size_t weight(ClassId c) const { return classes_[c].weight; }  // its nodes and parents, dead ones too
    // False means that no node of the class (no parent of it) has the operator. True means that one may have it.
    bool may_hold(ClassId c, std::uint32_t op_bits) const { return (classes_[c].node_ops & op_bits) == op_bits; }
    bool may_have_parents(ClassId c, std::uint32_t op_bits) const { return (classes_[c].parent_ops & op_bits) == op_bits; }
    using EGraphData::op_bit;
    // Calls f(node, position) for every parent, dead ones too.
    template <class F>
    void each_parent(ClassId c, F&& f) const {
        for (std::uint32_t s = classes_[c].first_parent; s != none;) {
            if (s & pool_slot) {
                const std::uint32_t at = s & ~pool_slot;
                const NodeId n = pool_owner_[at];
                f(n, at - table_.record(n).a);
                s = pool_next_[at];
            } else {
                f(s >> 1, s & 1);
                s = parent_next_[s];
            }
        }
    }

private:
    ClassId new_class(NodeId founder);
    void enter_node(NodeId n, OpId op, std::span<const ClassId> children);
    void link_parent(ClassId c, std::uint32_t slot, OpId op);
    bool unite(ClassId a, ClassId b, NodeId left, NodeId right, Reason reason);
    void repair(ClassId lost);
    void touch(NodeId n) {
        if (stamps_[n] != epoch_) stamps_[n] = epoch_, touched_.push_back(n);
    }
    void class_gained(ClassId c);
    void fact_changed(ClassId c, std::uint32_t analysis);
    void refine_parents();
    void key_edges();
    [[noreturn]] void refuse(const Analysis& analysis, NodeId left, NodeId right, Reason reason, const std::string& why);
    void make_index_ready() const;
    void index_class(ClassId c) const;

    std::vector<std::shared_ptr<Analysis>> analyses_;
    std::vector<std::unique_ptr<EGraphData>> kept_;
    std::uint64_t pops_ = 0;
};

}  // namespace loopegg
