// Everything that an e-graph remembers, as plain arrays: copying this struct is how a state is kept. Others use egraph.hpp.
#pragma once
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "egraph/edges.hpp"
#include "egraph/flat.hpp"
#include "egraph/node_table.hpp"
#include "egraph/proof_forest.hpp"

namespace loopegg {

class CompiledRewrite;

struct EGraphData {
    struct Class {
        NodeId last_node;                                // of a ring through next_in_class_
        std::uint32_t first_parent, last_parent;         // slots
        std::uint32_t weight;                            // the number of nodes and parents: what merging the class into another one costs
        std::uint32_t node_ops, parent_ops;              // a bit (op_bit) for each operator among the nodes and the parents; some may be gone
        mutable std::uint32_t index_first, index_count;  // into index_; index_count == none: out of date
    };
    struct StaleFact {
        NodeId node;
        std::uint32_t analysis;
    };
    struct Unmodified {
        ClassId in;
        std::uint32_t analysis;
    };

    static std::uint32_t op_bit(OpId op) { return 1u << (op % 32); }

    // A slot is one child position of one node: 2 * node + position for the children in place, the pool's index otherwise. The
    // parents of a class are a list through the slots that hold it.
    static constexpr std::uint32_t pool_slot = 0x80000000u;

    NodeTable table_;
    mutable Flat<ClassId> union_;
    Flat<Class> classes_;
    Flat<NodeId> next_in_class_;
    Flat<std::uint32_t> parent_next_, pool_next_;
    Flat<NodeId> pool_owner_;
    Flat<std::uint32_t> stamps_;
    Flat<NodeId> touched_;
    std::vector<std::size_t> touched_begin_{0, 0};  // by epoch, into touched_
    std::vector<ClassId> class_begin_{0, 0};        // by epoch, how many class ids there were
    Flat<std::uint32_t> class_stamps_;              // empty until watch_classes()
    bool watch_nodes_ = false;
    std::uint32_t epoch_ = 1;
    std::size_t live_nodes_ = 0, live_classes_ = 0;
    Flat<ClassId> pending_;               // merged away, parents not yet repaired
    std::vector<StaleFact> stale_facts_;  // nodes whose children's facts changed
    std::vector<Unmodified> unmodified_;  // classes whose fact changed, modify() not yet called
    Symbol current_rule_;
    std::optional<ProofForest> forest_;
    std::vector<std::shared_ptr<const CompiledRewrite>> rules_;
    std::vector<Edge> edges_;
    std::unordered_multimap<std::size_t, EdgeId> edge_ids_;
    std::size_t edges_keyed_at_ = 0;  // how many classes there were when the keys were made
    // The reading index: a class is entered when somebody reads it.
    mutable Flat<NodeId> index_;
    mutable bool index_ready_ = false;  // the index has room for every class that may yet be read
    mutable Flat<ClassId> canonical_;
    mutable bool canonical_fresh_ = false;
};

}  // namespace loopegg
