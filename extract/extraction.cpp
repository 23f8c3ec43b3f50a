#include "extract/extraction.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"

namespace loopegg {
namespace {

// Visits the classes below `roots` along the choice, children before parents. Calls `cycle` with a class that depends on itself.
template <class Visit, class Cycle>
void post_order(const SerializedEGraph& egraph, const std::vector<NodeIndex>& choice, const std::vector<ClassIndex>& roots, Visit visit, Cycle cycle) {
    enum State : char { unseen, open, done };
    std::vector<char> state(egraph.classes.size(), unseen);
    std::vector<std::pair<ClassIndex, std::size_t>> stack;  // a class and its next child: no recursion, terms may be deep
    for (ClassIndex root : roots) {
        if (state[root] == unseen) stack.push_back({root, 0}), state[root] = open;
        while (!stack.empty()) {
            auto& [c, next] = stack.back();
            require(choice.at(c) != no_index && egraph.nodes.at(choice[c]).eclass == c, "an extraction must choose a node of every class that it reaches");
            const auto& children = egraph.nodes[choice[c]].children;
            if (next == children.size()) {
                visit(c);
                state[c] = done;
                stack.pop_back();
                continue;
            }
            const ClassIndex child = children[next++];
            if (state[child] == open) return cycle(child);
            if (state[child] == unseen) state[child] = open, stack.push_back({child, 0});
        }
    }
}

// For each class, the sum of `own` over its whole term.
template <class Own>
std::vector<double> totals(const SerializedEGraph& egraph, const std::vector<NodeIndex>& choice, const std::vector<ClassIndex>& roots, Own own) {
    std::vector<double> total(egraph.classes.size(), 0);
    post_order(
        egraph, choice, roots,
        [&](ClassIndex c) {
            total[c] = own(c);
            for (ClassIndex child : egraph.nodes[choice[c]].children) total[c] += total[child];
        },
        [](ClassIndex) { throw InternalFault("a checked extraction has no cycle"); });
    return total;
}

}  // namespace

bool proves(double bound, double cost) { return bound >= cost - 1e-9 * std::max(1.0, std::abs(cost)); }

void Extraction::check(const SerializedEGraph& egraph) {
    require(choice.size() == egraph.classes.size(), "an extraction has one entry per class");
    std::vector<NodeIndex> reached(choice.size(), no_index);
    cost = 0;
    post_order(
        egraph, choice, egraph.roots, [&](ClassIndex c) { reached[c] = choice[c], cost += egraph.nodes[choice[c]].cost; },
        [&](ClassIndex c) {
            throw InternalFault(fmt::format("extractor '{}' chose a term of class '{}' that contains itself", method, egraph.classes[c].id));
        });
    choice = std::move(reached);
    require(bound <= cost + 1e-6 * std::max(1.0, std::abs(cost)), "a bound must not exceed the cost of an actual choice");
    bound = std::min(bound, cost);
    optimal = proves(bound, cost);
    if (optimal) bound = cost;
}

double tree_cost(const SerializedEGraph& egraph, const Extraction& extraction) {
    const std::vector<double> cost = totals(egraph, extraction.choice, egraph.roots, [&](ClassIndex c) { return egraph.nodes[extraction.choice[c]].cost; });
    double total = 0;
    for (ClassIndex root : egraph.roots) total += cost[root];
    return total;
}

double term_size(const SerializedEGraph& egraph, const Extraction& extraction, ClassIndex eclass) {
    return totals(egraph, extraction.choice, {eclass}, [](ClassIndex) { return 1.0; })[eclass];
}

Term term_of(const SerializedEGraph& egraph, const Extraction& extraction, ClassIndex eclass) {
    std::vector<Term> made(egraph.classes.size());
    post_order(
        egraph, extraction.choice, {eclass},
        [&](ClassIndex c) {
            const SerializedNode& n = egraph.nodes[extraction.choice[c]];
            std::vector<Term> children;
            for (ClassIndex child : n.children) children.push_back(made[child]);
            made[c] = Term(n.op, std::move(children));
        },
        [](ClassIndex) { throw InternalFault("a checked extraction has no cycle"); });
    return made[eclass];
}

}  // namespace loopegg
