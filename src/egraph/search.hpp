// E-matching: finds every way in which a rule's left side occurs, or only those ways that a change since the last search made possible.
//
// A match is the e-nodes that the atoms of the query represent, one word each. The classes of the variables are read from these e-nodes.
// Incremental search (semi-naive) looks for fresh matches: those with an e-node that changed since the rule was last searched. With
// atoms 1..k, the search finds each match once: it takes the first fresh atom from the changed nodes, and the atoms before that one from
// the unchanged nodes.
#pragma once
#include <chrono>
#include <map>
#include <span>
#include <vector>

#include "egraph/compiled.hpp"
#include "egraph/egraph.hpp"

namespace loopegg {

// What changed in an e-graph, epoch by epoch and by operator: where an incremental search begins.

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

enum class SearchMode {
    incremental,
    plain,    // every match, from the roots of the patterns, each time; only fresh ones count towards a rule's limit
    checked,  // both: a fresh match that only one of the two searches finds is an internal fault
};

// What must not be exceeded while searching and applying.
struct Budget {
    std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
    std::size_t bytes = ~std::size_t{0};    // of the e-graph and the matches together
    std::size_t matches = ~std::size_t{0};  // of one rule
};

enum class SearchEnd { complete, too_many, out_of_time, out_of_memory };

// An incremental search that found too many matches. It is kept so that the next search continues where this one ended. What changes meanwhile
// counts as changed after `upto`. Matches that such a change touches are dropped, and found again among the later changes.
struct Unfinished {
    std::uint32_t since = 0, upto = 0;  // the search looks for what changed after epoch `since` and up to `upto`; upto = 0: there is no such search
    std::uint32_t atom = 0, epoch = 0;  // the atom and the epoch whose changed nodes the search was walking through
    std::size_t place = 0;              // of the first of these nodes that the search has not finished
    Flat<NodeId> matches;               // found before that
};

// What is looked for, and how.
struct SearchRequest {
    const CompiledRewrite& rule;
    std::uint32_t since;  // the last epoch that the rule has seen; 0: everything is fresh
    SearchMode mode;
    const Budget& budget;
};

// Appends the matches of the rule to `matches`, query().atoms.size() words each. The search continues with `unfinished`, which must be of the same rule
// and `since`. After too_many, `unfinished` may hold the matches instead.
SearchEnd search(const EGraph& graph, SearchIndex& index, const SearchRequest& request, Flat<NodeId>& matches, Unfinished& unfinished);

}  // namespace loopegg
