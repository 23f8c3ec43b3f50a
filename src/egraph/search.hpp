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
    plain,     // every match is looked for from the roots of the patterns; those that are not fresh are dropped
    checked,   // both, and a difference is an internal fault
};

// What must not be exceeded while searching and applying.
struct Budget {
    std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
    std::size_t bytes = ~std::size_t{0};       // of the e-graph and the matches together
    std::size_t matches = ~std::size_t{0};     // of one rule
};

enum class SearchEnd { complete, too_many, out_of_time, out_of_memory };

// The nodes by operator, of one moment of an e-graph. Good until the e-graph changes.
class SearchIndex {
public:
    explicit SearchIndex(const EGraph& graph) : graph_(graph) {}
    std::span<const NodeId> all(OpId op);

    struct Fresh {
        std::vector<std::uint32_t> first;   // by operator, into nodes
        std::vector<NodeId> nodes;
        std::vector<bool> marked;           // by node, for rules that read facts; else stamps tell
        std::span<const NodeId> of(OpId op) const { return op + 1 < first.size() ? std::span(nodes).subspan(first[op], first[op + 1] - first[op]) : std::span<const NodeId>{}; }
    };
    // What changed since an epoch; with_facts: also nodes one of whose classes changed its facts.
    const Fresh& fresh(std::uint32_t since, bool with_facts);

private:
    void group(std::vector<NodeId>& nodes, Fresh& out) const;

    const EGraph& graph_;
    Fresh all_;
    bool all_known_ = false;
    std::map<std::pair<std::uint32_t, bool>, Fresh> fresh_;
};

// Appends the fresh matches of a rule to `matches`, query().atoms.size() words each. since = 0 finds everything.
SearchEnd search(const EGraph& graph, SearchIndex& index, const CompiledRewrite& rule, std::uint32_t since, SearchMode mode,
                 const Budget& budget, Flat<NodeId>& matches);

// Puts matches of `width` words each in order, so that what is applied does not depend on how it was found.
void sort_matches(Flat<NodeId>& matches, std::size_t width);

}  // namespace loopegg
