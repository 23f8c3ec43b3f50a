// A program of its own on loopegg's engine: a rule with a guard, and an extractor, both from outside the tree.
#include <iostream>

#include "base/sexpr.hpp"
#include "egraph/runner.hpp"
#include "extract/acyclic.hpp"
#include "extract/extraction.hpp"
#include "extract/from_egraph.hpp"

using namespace loopegg;

// Takes the cheapest tree of every class. An extractor is any function that fills `choice` and ends with check().
static Extraction cheapest_choice(const SerializedEGraph& egraph) {
    Extraction answer;
    answer.choice = cheapest_trees(egraph).choice;
    answer.check(egraph);
    return answer;
}

int main() {
    EGraph graph;
    const ClassId root = graph.add(parse_term("(+ (* x 8) (* x 3))"));

    Rewrite shift = rewrite("shift-instead", "(* ?a ?n)", "(shift ?a ?n)");
    shift.guards = {{"(power-of-two ?n)", {Symbol("?n")}, [](const EGraph& g, std::span<const ClassId> c) {
                         const std::int64_t n = g.integer(c[0]).value_or(0);
                         return Verdict{n > 0 && (n & (n - 1)) == 0, "a power of two", {}};
                     }}};
    const std::vector<Rewrite> rules{shift};
    Runner(graph, rules).run({.limits = {.iterations = 5, .nodes = 1000}});

    // On this machine, a multiplication costs as much as ten shifts.
    const EGraphCopy copy = copy_of(graph, std::span(&root, 1), [](const NodeView& n) { return n.op.text() == "*" ? 10.0 : 1.0; });
    const Extraction answer = cheapest_choice(copy.egraph);
    std::cout << to_string(term_of(copy.egraph, answer, copy.egraph.roots[0])) << " costs " << answer.cost << "\n";
}
