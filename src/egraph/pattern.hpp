// Patterns as queries: a list of atoms (one e-node each) that share slots, and the orders in which to look for them.
#pragma once
#include <vector>

#include "base/term.hpp"
#include "egraph/ids.hpp"
#include "egraph/rewrite.hpp"

namespace loopegg {

// One operator of a pattern: an e-node with this operator whose class and children are the classes in these slots.
struct Atom {
    Symbol op;                            // empty: any node (the pattern is a bare variable)
    std::uint32_t root;                   // slot of its class
    std::vector<std::uint32_t> children;  // slots
};

struct Query {
    std::vector<Atom> atoms;                    // parents before children, patterns in order
    std::vector<Symbol> slots;                  // the variable that names each slot; empty where no variable does
    std::vector<std::uint32_t> roots;           // the atom at the root of each pattern
    std::uint32_t slot(Symbol variable) const;  // none when no slot has this name
};

Query make_query(const std::vector<Rooted>& patterns);

// How the next atom's candidates are found once earlier atoms are bound.
enum class Step : std::uint8_t {
    scan,      // every node with the operator
    start_up,  // likewise, or the parents of a constant, whichever are fewer
    down,      // the class is known: its nodes
    up,        // a child is known: the parents of its class
    probe,     // every child is known: one look-up
};

struct PlanStep {
    Step kind;
    std::uint32_t atom;
    std::uint32_t via = 0;                // for up and start_up: the child position whose class is known
    bool root_known = false;              // the class is bound before the step, and the step checks it; else the step binds the class
    std::vector<bool> child_known{};      // likewise for each child
    std::vector<std::uint32_t> guards{};  // the guards whose variables are bound after this step, and not before
};

// An order over the atoms of a query that begins at `first` (after the constants).
std::vector<PlanStep> make_plan(const Query& query, std::uint32_t first, const std::vector<std::vector<std::uint32_t>>& guard_slots);

}  // namespace loopegg
