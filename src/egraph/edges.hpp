// The second relation: directed edges from a class to a variant of it, each with the evidence that allows it. An edge never merges.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "base/verdict.hpp"
#include "egraph/ids.hpp"

namespace loopegg {

// What one guard answered, as it is kept with a merge or an edge.
struct GuardRecord {
    std::string guard;  // as written in the rule: "(permutable ?a ?b)"
    Verdict verdict;
};

struct Edge {
    ClassId from, to;  // the classes when the edge was made; EGraph::find gives today's classes
    Symbol rule;
    std::vector<std::pair<Symbol, ClassId>> substitution;  // every variable of the rule, in the rule's own order
    std::vector<GuardRecord> guards;
    std::uint32_t reason = 0;  // into the proof log, when proofs are on
};

}  // namespace loopegg
