// E-matching: every way in which a rule's left side occurs, or only those ways that something changed since makes possible.
//
// A match is the e-nodes that the atoms of the query stand for, one word each; the classes of the variables are read from them.
// Incremental search (semi-naive): a match is fresh when one of its e-nodes changed since the rule was last searched. With
// atoms 1..k, it is found once, with the first fresh atom taken from what changed and the atoms before it from what did not.
#pragma once
#include <chrono>
#include <map>
#include <vector>

#include "egraph/compiled.hpp"
#include "egraph/egraph.hpp"

namespace loopegg {

enum class SearchMode {
    incremental,
    plain,     // every match, from the roots of the patterns, each time; only fresh ones count towards a rule's limit
    checked,   // both: what plain search finds fresh and incremental search does not, or the reverse, is an internal fault
};

// What must not be exceeded while searching and applying.
struct Budget {
    std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
    std::size_t bytes = ~std::size_t{0};       // of the e-graph and the matches together
    std::size_t matches = ~std::size_t{0};     // of one rule
};

enum class SearchEnd { complete, too_many, out_of_time, out_of_memory };

// Nodes by operator: one list after another.
struct NodesByOp {
    std::vector<std::uint32_t> first;   // by operator, into nodes
    std::vector<NodeId> nodes;
    std::span<const NodeId> of(OpId op) const {
        return op + 1 < first.size() ? std::span(nodes).subspan(first[op], first[op + 1] - first[op]) : std::span<const NodeId>{};
    }
};

// What a search looks into, at one moment of an e-graph. Keeps from one moment to the next what changed in each epoch.
class SearchIndex {
public:
    explicit SearchIndex(const EGraph& graph) : graph_(graph) {}
    // The e-graph has changed; call before searching. No rule will ask for what changed in `seen` or before.
    void update(std::uint32_t seen);

    std::span<const NodeId> all(OpId op);
    // The nodes of an operator that changed after one epoch and up to another: a list for each, from which those are to be taken whose
    // stamp is that epoch and which still have the operator.
    struct Touched { std::uint32_t epoch; std::span<const NodeId> nodes; };
    void touched(std::uint32_t since, std::uint32_t upto, OpId op, std::vector<Touched>& out);
    // For rules that read facts: also nodes one of whose classes changed its facts.
    struct WithFacts { NodesByOp by_op; std::vector<bool> marked; };
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

// An incremental search that found too many matches, kept so that the next one goes on where it ended. What changes meanwhile
// counts as changed after `upto`: matches that it touches are dropped, and found again among the later changes.
struct Unfinished {
    std::uint32_t since = 0, upto = 0;   // it looks for what changed after the one epoch and up to the other; upto = 0: there is none
    std::uint32_t atom = 0, epoch = 0;   // the atom and the epoch whose changed nodes it was walking through
    std::size_t place = 0;               // and the first of them that it has not finished
    Flat<NodeId> matches;                // found before that
};

// Appends the matches of a rule to `matches`, query().atoms.size() words each. since = 0: everything is fresh. Goes on with
// `unfinished`, which must be of the same rule and `since`; after too_many, `unfinished` may hold the matches instead.
SearchEnd search(const EGraph& graph, SearchIndex& index, const CompiledRewrite& rule, std::uint32_t since, SearchMode mode,
                 const Budget& budget, Flat<NodeId>& matches, Unfinished& unfinished);

}  // namespace loopegg
