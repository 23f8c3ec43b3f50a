// Small e-graphs for tests, written by hand or drawn at random, and their best choice, found by trying every choice.
#pragma once
#include <functional>
#include <limits>
#include <random>

#include "extract/extraction.hpp"

namespace loopegg {

// The e-graph of a JSON text.
inline SerializedEGraph egraph_of(const std::string& text) { return read_serialized(make_source("<test>", text)); }

// Up to `classes` classes of up to `nodes` nodes; cycles happen. The first class is the root.
inline SerializedEGraph random_egraph(std::mt19937& random, std::size_t classes, std::size_t nodes) {
    SerializedEGraph g;
    const std::size_t count = 1 + random() % classes;
    for (std::size_t c = 0; c < count; ++c) g.add_class("c" + std::to_string(c));
    for (ClassIndex c = 0; c < count; ++c) {
        const std::size_t own = 1 + random() % nodes;
        for (std::size_t n = 0; n < own; ++n) {
            std::vector<ClassIndex> children;
            for (std::size_t k = random() % 4; k > 0; --k) children.push_back(static_cast<ClassIndex>(random() % count));
            // Each node has an operator of its own, so that no node stands in two classes.
            g.add_node(c, "f" + std::to_string(g.nodes.size()), std::move(children), static_cast<double>(random() % 8) / 2);
        }
    }
    g.roots.push_back(0);
    if (count > 2 && random() % 3 == 0) g.roots.push_back(1);
    return g;
}

// The least DAG cost over all acyclic choices, infinite when there is none. Exponential.
inline double least_cost(const SerializedEGraph& g) {
    std::vector<NodeIndex> choice(g.classes.size(), no_index);
    double best = std::numeric_limits<double>::infinity();
    // Takes a class that is needed and has no choice yet. `cost` is the cost of the choices so far.
    std::function<void(double)> extend = [&](double cost) {
        if (cost >= best) return;
        std::vector<ClassIndex> stack(g.roots.begin(), g.roots.end());
        std::vector<char> seen(g.classes.size(), 0), done(g.classes.size(), 0);
        while (!stack.empty()) {
            const ClassIndex c = stack.back();
            stack.pop_back();
            if (seen[c]) continue;
            seen[c] = 1;
            if (choice[c] == no_index) {
                for (NodeIndex n : g.classes[c].nodes) choice[c] = n, extend(cost + g.nodes[n].cost);
                choice[c] = no_index;
                return;
            }
            for (ClassIndex d : g.nodes[choice[c]].children) stack.push_back(d);
        }
        // The choice is whole. Is it acyclic?
        bool changed = true;
        while (changed) {
            changed = false;
            for (ClassIndex c = 0; c < g.classes.size(); ++c) {
                if (!seen[c] || done[c]) continue;
                bool ready = true;
                for (ClassIndex d : g.nodes[choice[c]].children) ready = ready && done[d];
                if (ready) done[c] = 1, changed = true;
            }
        }
        for (ClassIndex root : g.roots)
            if (!done[root]) return;
        best = cost;
    };
    extend(0);
    return best;
}

}  // namespace loopegg
