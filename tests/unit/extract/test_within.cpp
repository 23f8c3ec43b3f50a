// Extraction under side constraints, held against a walk through all choices.
#include <catch2/catch.hpp>

#include <cmath>
#include <functional>
#include <random>

#include "extract/within.hpp"

using namespace loopegg;

namespace {

// Classes in layers, each of whose nodes needs some classes of later layers; nodes have a weight beside their cost.
struct Layered {
    SerializedEGraph egraph;
    std::vector<double> weight;
};
Layered layered(std::mt19937_64& random, std::size_t classes) {
    Layered g;
    for (std::size_t c = 0; c < classes; ++c) g.egraph.add_class("c" + std::to_string(c));
    for (ClassIndex c = 0; c < classes; ++c)
        for (std::size_t n = 1 + random() % 3; n > 0; --n) {
            std::vector<ClassIndex> children;
            for (ClassIndex d = c + 1; d < classes; ++d)
                if (random() % 3 == 0) children.push_back(d);
            g.egraph.add_node(c, "f", std::move(children), static_cast<double>(random() % 20));
            g.weight.push_back(static_cast<double>(random() % 10) - 3);
        }
    g.egraph.roots = {0};
    return g;
}

double weight_of(const Layered& g, const Extraction& e) {
    double sum = 0;
    for (NodeIndex n : e.choice)
        if (n != no_index) sum += g.weight[n];
    return sum;
}

// The least cost of any choice whose weight is at most so much; infinite where there is none.
double by_hand(const Layered& g, double most) {
    double best = std::numeric_limits<double>::infinity();
    Extraction e;
    e.choice.assign(g.egraph.classes.size(), no_index);
    const std::function<void(std::size_t)> walk = [&](std::size_t c) {
        if (c == g.egraph.classes.size()) {
            Extraction whole = e;
            whole.check(g.egraph);
            if (weight_of(g, whole) <= most) best = std::min(best, whole.cost);
            return;
        }
        for (NodeIndex n : g.egraph.classes[c].nodes) e.choice[c] = n, walk(c + 1);
    };
    walk(0);
    return best;
}

}  // namespace

TEST_CASE("the cheapest choice within a bound is the one that a walk through all finds", "[unit][extract]") {
    std::mt19937_64 random(5);
    std::size_t possible = 0, impossible = 0;
    for (int i = 0; i < 60; ++i) {
        const Layered g = layered(random, 3 + random() % 5);
        SideConstraint bound;
        for (NodeIndex n = 0; n < g.egraph.nodes.size(); ++n) bound.nodes.emplace_back(n, g.weight[n]);
        bound.upper = static_cast<double>(random() % 12) - 4;
        const SideConstraint constraints[] = {bound};
        const double expected = by_hand(g, bound.upper);
        const auto found = extract_within(g.egraph, constraints);
        CHECK(found.has_value() == std::isfinite(expected));
        ++(found ? possible : impossible);
        if (!found) continue;
        CHECK(found->cost == Approx(expected));
        CHECK(found->optimal);
        CHECK(weight_of(g, *found) <= bound.upper + 1e-6);
    }
    CHECK(possible > 10);
    CHECK(impossible > 3);
}

TEST_CASE("what is always chosen counts, and alone may break a bound", "[unit][extract]") {
    SerializedEGraph g;
    const ClassIndex leaf = g.add_class("leaf"), root = g.add_class("root");
    const NodeIndex only = g.add_node(leaf, "x", {}, 3), top = g.add_node(root, "f", {leaf, leaf}, 4);
    g.roots = {root};
    const auto free = extract_within(g, {});
    REQUIRE(free);
    CHECK(free->cost == 7);
    CHECK(free->optimal);
    const SideConstraint within[] = {{.nodes = {{only, 2}, {top, 1}}, .upper = 3}}, beyond[] = {{.nodes = {{only, 2}, {top, 1}}, .upper = 2.5}};
    CHECK(extract_within(g, within));
    CHECK_FALSE(extract_within(g, beyond));
}
