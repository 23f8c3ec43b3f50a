// The answer of an extractor: one node for every class that the roots need, and how good that choice is known to be.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/term.hpp"
#include "extract/serialized.hpp"

namespace loopegg {

struct Extraction {
    std::vector<NodeIndex> choice;  // by class; no_index where the roots do not reach
    double cost = 0;                // DAG cost: every chosen node once, however often it is used
    double bound = 0;               // no choice costs less than this
    bool optimal = false;           // the bound proves the cost
    double seconds = 0;
    std::string method;

    // Fills `cost` and clears choices that the roots do not reach. Throws InternalFault when a class that is reached has no choice, has a
    // choice of another class, or depends on itself. Every extractor ends with this call.
    void check(const SerializedEGraph& egraph);
};

// Whether a lower bound proves that `cost` is the smallest cost: both are equal up to rounding.
bool proves(double bound, double cost);

// The cost of each root's term written out in full (shared parts count every time they are used); may be infinite in double.
double tree_cost(const SerializedEGraph& egraph, const Extraction& extraction);

// How many operators the chosen term of a class has when it is written out in full; may be infinite in double.
double term_size(const SerializedEGraph& egraph, const Extraction& extraction, ClassIndex eclass);

// The chosen term of a class; equal parts are one shared Term. Operators keep their names.
Term term_of(const SerializedEGraph& egraph, const Extraction& extraction, ClassIndex eclass);

}  // namespace loopegg
