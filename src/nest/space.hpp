// The terms that an e-class holds: how many there are, all of them when they are few, and fair samples when they are many.
#pragma once
#include <random>
#include <unordered_map>
#include <vector>

#include "egraph/egraph.hpp"

namespace loopegg {

// Counts once; the e-graph must not change while this is used. A term never passes through one class twice on a path, so counts are
// finite (a class that is part of itself counts what does not lead back).
class TermSpace {
public:
    explicit TermSpace(const EGraph& graph) : graph_(graph) {}

    double count(ClassId c);                              // of distinct terms; large counts are rounded
    std::vector<Term> all(ClassId c, std::size_t most);   // the first so many, in a fixed order
    Term sample(ClassId c, std::mt19937_64& random);      // every term alike probable

private:
    double count_node(NodeId n);
    void enumerate(ClassId c, std::size_t most, std::vector<Term>& out, std::vector<ClassId>& path);

    const EGraph& graph_;
    std::unordered_map<ClassId, double> counts_;
    std::unordered_map<ClassId, bool> open_;
};

}  // namespace loopegg
