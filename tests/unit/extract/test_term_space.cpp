#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "extract/acyclic.hpp"
#include "extract/best_terms.hpp"
#include "extract/term_space.hpp"
#include "unit/extract/small_egraphs.hpp"

using namespace loopegg;

namespace {

// Every term of a class of at most `size` operators, with its cost.
std::map<std::string, double> all_terms(const SerializedEGraph& g, ClassIndex c, std::size_t size) {
    std::map<std::string, double> result;
    if (size == 0) return result;
    for (NodeIndex n : g.classes[c].nodes) {
        const auto& children = g.nodes[n].children;
        // Extends each partial list of children by every term that still fits.
        struct Partial {
            std::string text;
            double cost;
            std::size_t left;
        };
        std::vector<Partial> partial{{g.nodes[n].op, g.nodes[n].cost, size - 1}};
        for (ClassIndex d : children) {
            std::vector<Partial> next;
            for (const Partial& p : partial)
                for (const auto& [text, cost] : all_terms(g, d, p.left)) {
                    const std::size_t used = static_cast<std::size_t>(std::count(text.begin(), text.end(), 'f'));
                    next.push_back({p.text + " " + text, p.cost + cost, p.left - used});
                }
            partial = std::move(next);
        }
        for (const Partial& p : partial) result.emplace(children.empty() ? p.text : "(" + p.text + ")", p.cost);
    }
    return result;
}

// n loops in any order: the class of a set of loops, one node per loop that may come first.
SerializedEGraph orders(int n) {
    SerializedEGraph g;
    for (int set = 0; set < 1 << n; ++set) g.add_class("s" + std::to_string(set));
    g.add_node(0, "done", {}, 1);
    for (int set = 1; set < 1 << n; ++set)
        for (int i = 0; i < n; ++i)
            if (set >> i & 1) g.add_node(static_cast<ClassIndex>(set), "at" + std::to_string(i), {static_cast<ClassIndex>(set & ~(1 << i))}, 1);
    g.roots = {static_cast<ClassIndex>((1 << n) - 1)};
    return g;
}

SerializedEGraph cyclic() {  // A = x | (f A) | (g A A)
    SerializedEGraph g;
    const ClassIndex a = g.add_class("A");
    g.add_node(a, "fx", {}, 1), g.add_node(a, "ff", {a}, 1), g.add_node(a, "fg", {a, a}, 0);
    g.roots = {a};
    return g;
}

}  // namespace

TEST_CASE("terms are counted exactly, however many", "[unit]") {
    CHECK(TermSpace(orders(6), 63).count() == 720);
    CHECK(TermSpace(orders(12), (1 << 12) - 1).count() == 479001600);
    SerializedEGraph wide;  // 300 levels of 3 choices: 3^300
    for (int i = 0; i < 300; ++i) {
        const ClassIndex c = wide.add_class(std::to_string(i));
        for (int k = 0; k < 3; ++k) wide.add_node(c, "f" + std::to_string(k), i == 0 ? std::vector<ClassIndex>{} : std::vector<ClassIndex>{c - 1}, 1);
    }
    mpz_class expected;
    mpz_ui_pow_ui(expected.get_mpz_t(), 3, 300);
    CHECK(TermSpace(wide, 299).count() == expected);
}

TEST_CASE("a cyclic class is infinite, counted up to a size, or without detours", "[unit]") {
    const SerializedEGraph g = cyclic();
    CHECK(TermSpace(g, 0).infinite());
    CHECK(TermSpace(g, 0, {.size = 1}).count() == 1);
    CHECK(TermSpace(g, 0, {.size = 3}).count() == 4);  // x, fx, ffx, gxx
    CHECK(TermSpace(g, 0, {.size = 40}).count() > mpz_class("1000000000000"));
    CHECK(TermSpace(g, 0, {.direct = true}).count() == 1);
    CHECK(TermSpace(g, 0, {.size = 0}).count() == 0);
}

TEST_CASE("numbering reaches every term once, and only terms of the class", "[unit]") {
    std::mt19937 random(5);
    for (int i = 0; i < 300; ++i) {
        const SerializedEGraph g = random_egraph(random, 4, 3);
        const std::size_t size = 1 + random() % 5;
        const auto expected = all_terms(g, 0, size);
        const TermSpace space(g, 0, {.size = size});
        REQUIRE(space.count() == expected.size());
        std::set<std::string> reached;
        for (mpz_class k = 0; k < space.count(); ++k) reached.insert(to_string(space.at(k)));
        REQUIRE(reached.size() == expected.size());
        for (const std::string& text : reached) REQUIRE(expected.contains(text));
    }
}

TEST_CASE("drawing is uniform and the same for one seed", "[unit]") {
    const SerializedEGraph g = orders(4);
    const TermSpace space(g, 15);
    std::mt19937_64 random(1), again(1);
    std::map<std::string, int> times;
    const int draws = 24'000;
    for (int i = 0; i < draws; ++i) {
        const std::string text = to_string(space.sample(random));
        ++times[text];
        if (i < 100) CHECK(text == to_string(space.sample(again)));
    }
    CHECK(times.size() == 24);
    double chi = 0;
    for (const auto& [text, n] : times) chi += (n - 1000.0) * (n - 1000.0) / 1000.0;
    CHECK(chi < 55);  // 23 degrees of freedom: one seed in 5,000 would be above
}

TEST_CASE("an e-graph that is not congruent is refused, for its terms cannot be told apart", "[errors]") {
    SerializedEGraph g;
    const ClassIndex a = g.add_class("A"), b = g.add_class("B"), r = g.add_class("R");
    g.add_node(a, "x", {}, 1), g.add_node(b, "x", {}, 1), g.add_node(r, "f", {a, b}, 1);
    g.roots = {r};
    CHECK_THROWS_AS(TermSpace(g, r), UserError);
}

TEST_CASE("the k best terms are the k cheapest, each once, cycles or not", "[unit]") {
    std::mt19937 random(9);
    for (int i = 0; i < 300; ++i) {
        const SerializedEGraph g = random_egraph(random, 4, 3);
        INFO(to_json(g));
        const std::size_t size = 6;
        const auto small = all_terms(g, 0, size);
        const auto best = best_terms(g, 0, 8);
        std::set<std::string> distinct;
        for (std::size_t k = 0; k < best.size(); ++k) {
            const std::string text = to_string(best[k].term);
            REQUIRE(distinct.insert(text).second);
            if (k > 0) REQUIRE(best[k].cost >= best[k - 1].cost - 1e-9);
            if (auto it = small.find(text); it != small.end()) REQUIRE(it->second == Approx(best[k].cost));
        }
        // No small term that was left out is cheaper than the last one taken.
        for (const auto& [text, cost] : small)
            if (!distinct.contains(text)) {
                REQUIRE(best.size() == 8);
                REQUIRE(cost >= best.back().cost - 1e-9);
            }
    }
    CHECK(best_terms(cyclic(), 0, 50).size() == 50);
    CHECK(best_terms(orders(4), 15, 100).size() == 24);
}
