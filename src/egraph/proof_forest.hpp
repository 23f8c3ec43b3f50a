// Why things are equal: a forest over e-nodes whose edges are the merges, each with its reason.
//
// Every e-node represents one term: its operator over the terms of the classes that the node was made with. The term of a class id is
// the term of the node that founded the class. Two nodes are proven equal exactly when a path joins them. An edge joins trees that were apart
// when it was made, so the path between two nodes uses only what was known when they became equal: proofs cannot be circular.
#pragma once
#include <unordered_map>
#include <vector>

#include "egraph/edges.hpp"
#include "egraph/flat.hpp"
#include "egraph/ids.hpp"

namespace loopegg {

// An offset into the log of reasons: [rule, words...]. The rule gives the words their meaning (see compiled.hpp).
using Reason = std::uint32_t;
inline constexpr Reason congruence = 0;

class ProofForest {
public:
    static constexpr std::uint32_t asserted = 0x7fffffffu;  // in place of a rule: [asserted, Symbol of the words given]

    ProofForest() { log_.push_back(0); }  // offset 0 stays unused: it means congruence

    void add_node(NodeId n, std::span<const ClassId> children) {
        links_.push_back({n, congruence});
        std::uint32_t word[2] = {none, none};
        if (children.size() <= 2) {
            for (std::size_t i = 0; i < children.size(); ++i) word[i] = children[i];
        } else {
            word[0] = static_cast<std::uint32_t>(pool_.size());
            pool_.append(children);
        }
        made_with_.push_back({word[0], word[1]});
    }
    void add_class(NodeId founder) { founders_.push_back(founder); }
    // x and y were in different trees. The links from x to the root of its tree are turned around.
    void link(NodeId x, NodeId y, Reason reason) {
        Stored next{y, reason};
        for (NodeId n = x;;) {
            const Stored old = links_[n];
            links_[n] = next;
            if (old.to == n) return;
            next = {n, old.reason ^ backward};
            n = old.to;
        }
    }
    // A node known to have no edge yet joins the tree of y.
    void hang(NodeId x, NodeId y, Reason reason) { links_[x] = {y, reason}; }

    Reason note(std::span<const std::uint32_t> words) {
        const Reason at = static_cast<Reason>(log_.size());
        log_.append(words);
        return at;
    }
    std::span<const std::uint32_t> words(Reason r, std::size_t count) const { return {log_.data() + r, count}; }
    std::uint32_t rule(Reason r) const { return log_[r]; }
    void keep_evidence(Reason r, std::vector<GuardRecord> guards) { evidence_[r] = std::move(guards); }
    const std::vector<GuardRecord>* evidence(Reason r) const {
        const auto it = evidence_.find(r);
        return it == evidence_.end() ? nullptr : &it->second;
    }

    NodeId founder(ClassId c) const { return founders_[c]; }
    std::span<const ClassId> made_with(NodeId n, std::uint32_t arity) const {
        const Pair& p = made_with_[n];
        return {arity <= 2 ? &p.a : pool_.data() + p.a, arity};
    }
    // The edge from n towards its root. forward: the reason's left side is at n.
    struct Link {
        NodeId to;
        Reason reason;
        bool forward;
    };
    Link up(NodeId n) const { return {links_[n].to, links_[n].reason & ~backward, !(links_[n].reason & backward)}; }
    bool root(NodeId n) const { return links_[n].to == n; }
    bool linked(NodeId x, NodeId y) const {
        while (!root(x)) x = links_[x].to;
        while (!root(y)) y = links_[y].to;
        return x == y;
    }
    std::size_t bytes() const { return links_.bytes() + made_with_.bytes() + pool_.bytes() + founders_.bytes() + log_.bytes(); }

    static constexpr Reason backward = 0x80000000u;  // on a reason: its left side is the far end of the edge

private:
    struct Stored {
        NodeId to;
        Reason reason;
    };
    struct Pair {
        std::uint32_t a, b;
    };
    Flat<Stored> links_;    // by node; a root points at itself
    Flat<Pair> made_with_;  // by node: the children when the node was made; at most two are here, else the place in the pool
    Flat<ClassId> pool_;
    Flat<NodeId> founders_;  // by class id
    Flat<std::uint32_t> log_;
    std::unordered_map<Reason, std::vector<GuardRecord>> evidence_;
};

}  // namespace loopegg
