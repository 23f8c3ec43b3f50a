// The engine from C++: terms and rules of a language of the user, equality by rules, and the proof of it.
#include <iostream>

#include "base/sexpr.hpp"
#include "egraph/explain.hpp"
#include "egraph/runner.hpp"

using namespace loopegg;

int main() {
    EGraph graph(EGraph::Options{.proofs = true});
    const Term slow = parse_term("(/ (* x 2) 2)");
    const ClassId root = graph.add(slow);

    Rewrite cancel = rewrite("cancel-div", "(/ ?a ?a)", "1");
    cancel.guards = {{"(not-zero ?a)", {Symbol("?a")}, [](const EGraph& g, std::span<const ClassId> c) {
                          return Verdict{g.integer(c[0]).value_or(0) != 0, "a number other than 0", {}};
                      }}};
    const std::vector<Rewrite> rules{
        rewrite("mul-then-div", "(/ (* ?a ?b) ?c)", "(* ?a (/ ?b ?c))"),
        rewrite("mul-one", "(* ?a 1)", "?a"),
        cancel,
    };

    const RunReport report = Runner(graph, rules).run({.limits = {.iterations = 10, .nodes = 10'000}});
    const Term fast = graph.smallest_term(root);
    std::cout << to_string(slow) << " is " << to_string(fast) << " (" << name_of(report.stop) << ", " << graph.node_count() << " nodes)\n"
              << to_string(minimise(explain(graph, slow, fast), graph));
}
