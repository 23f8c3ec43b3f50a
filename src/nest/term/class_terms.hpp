// The terms that an e-class holds: how many there are, all of them when they are few, and fair samples when they are many.
#pragma once
#include <map>
#include <random>
#include <unordered_map>
#include <utility>
#include <vector>

#include "egraph/egraph.hpp"

namespace loopegg {

// Counts each class once, so the e-graph must not change while this object is used. A term never passes through one class twice on a path, so
// counts are finite (a class that is part of itself counts only the terms that do not lead back to it).
class ClassTerms {
public:
    explicit ClassTerms(const EGraph& graph) : graph_(graph) {}

    double count(ClassId c);                             // of distinct terms; large counts are rounded
    std::vector<Term> all(ClassId c, std::size_t most);  // the first so many, in a fixed order
    Term sample(ClassId c, std::mt19937_64& random);     // every term alike probable

private:
    double count_node(NodeId n);
    void enumerate(ClassId c, std::size_t most, std::vector<Term>& out, std::vector<ClassId>& path);

    const EGraph& graph_;
    std::unordered_map<ClassId, double> counts_;
    std::unordered_map<ClassId, bool> open_;
};

// The terms whose axes are made of at most so many splits, pairs, spans and diagonals one inside another: finitely many even where an axis
// is the pair of its own halves. Lists of loops may be of any length.
class ShallowTerms {
public:
    ShallowTerms(const EGraph& graph, int levels) : graph_(graph), levels_(levels) {}

    double count(ClassId c) { return count(c, levels_); }
    Term sample(ClassId c, std::mt19937_64& random) { return sample(c, levels_, random); }

private:
    double count(ClassId c, int levels);
    double count_node(NodeId n, int levels);
    Term sample(ClassId c, int levels, std::mt19937_64& random);

    const EGraph& graph_;
    int levels_;
    std::map<std::pair<ClassId, int>, double> counts_;
};

}  // namespace loopegg
