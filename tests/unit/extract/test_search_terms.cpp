// The k best terms under a cost that is no sum: what walking every term finds, on classes small enough to walk.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "base/error.hpp"
#include "extract/search_terms.hpp"
#include "extract/term_space.hpp"

using namespace loopegg;

namespace {

TermCost each(const std::function<double(const Term&)>& cost) {
    return [cost](std::span<const Term> terms) {
        std::vector<double> all;
        for (const Term& t : terms) all.push_back(cost(t));
        return all;
    };
}

void leaves(const Term& t, std::vector<double>& out) {
    if (t.size() == 0) out.push_back(static_cast<double>(t.integer().value_or(0)));
    for (const Term& c : t.children()) leaves(c, out);
}

// Layers of classes: each node of a layer takes two classes of the layer below, leaves are numbers.
SerializedEGraph layered(std::mt19937_64& random, int depth, std::size_t width, std::size_t nodes) {
    SerializedEGraph g;
    std::vector<std::vector<ClassIndex>> layers;
    for (int d = 0; d <= depth; ++d) {
        layers.emplace_back();
        for (std::size_t w = 0; w < (d == depth ? 1 : width); ++w) layers.back().push_back(g.add_class(std::to_string(d) + "." + std::to_string(w)));
    }
    int number = 0;
    for (ClassIndex c : layers[0])
        for (std::size_t i = 0; i < nodes; ++i) g.add_node(c, std::to_string(number++ * 7 % 31), {}, 1);
    int op = 0;
    for (int d = 1; d <= depth; ++d)
        for (ClassIndex c : layers[static_cast<std::size_t>(d)])
            for (std::size_t i = 0; i < nodes; ++i) {
                const auto& below = layers[static_cast<std::size_t>(d - 1)];
                g.add_node(c, "f" + std::to_string(op++), {below[random() % below.size()], below[random() % below.size()]}, 1);
            }
    g.roots = {layers.back()[0]};
    return g;
}

// Far from a sum: how uneven the leaves are, and how far their product is from a target.
double uneven(const Term& t) {
    std::vector<double> all;
    leaves(t, all);
    const auto [low, high] = std::minmax_element(all.begin(), all.end());
    double product = 0;
    for (double v : all) product += std::log(1 + v);
    return (*high - *low) + std::abs(product - 6);
}

// Among terms of equal costs any may be named.
std::vector<double> best_by_walking(const SerializedEGraph& g, std::size_t k, const std::function<double(const Term&)>& cost) {
    const TermSpace space(g, g.roots[0]);
    std::vector<double> all;
    for (unsigned long i = 0; i < space.count().get_ui(); ++i) all.push_back(cost(space.at(i)));
    std::sort(all.begin(), all.end());
    all.resize(std::min(all.size(), k));
    return all;
}

}  // namespace

TEST_CASE("a class that is asked about as a whole gives its best terms, in order and each once", "[unit][extract]") {
    std::mt19937_64 random(5);
    for (int round = 0; round < 6; ++round) {
        const SerializedEGraph g = layered(random, 2, 3, 3);
        const FoundTerms found = search_terms(g, g.roots[0], 10, each(uneven), {.evaluations = 1000000});
        CHECK(found.complete);
        std::vector<double> costs;
        for (const RankedTerm& t : found.best) costs.push_back(t.cost);
        CHECK(costs == best_by_walking(g, 10, uneven));
        for (std::size_t i = 1; i < found.best.size(); ++i) CHECK(found.best[i - 1].term != found.best[i].term);
    }
}

TEST_CASE("asked about a tenth of a class, the search finds its best term nearly always", "[unit][extract]") {
    std::mt19937_64 random(9);
    int best = 0, rounds = 12;
    double excess = 0;
    for (int round = 0; round < rounds; ++round) {
        const SerializedEGraph g = layered(random, 3, 3, 2);
        const TermSpace space(g, g.roots[0]);
        const auto evaluations = static_cast<std::size_t>(space.count().get_ui() / 10);
        const double least = best_by_walking(g, 1, uneven).front();
        const FoundTerms found = search_terms(g, g.roots[0], 1, each(uneven), {.evaluations = evaluations, .together = 8});
        CHECK_FALSE(found.complete);
        CHECK(found.evaluated <= evaluations);
        REQUIRE(found.best.size() == 1);
        CHECK(found.best[0].cost >= least - 1e-12);
        best += found.best[0].cost <= least + 1e-12;
        excess += found.best[0].cost - least;
    }
    CHECK(best >= rounds - 3);
    CHECK(excess / rounds < 0.2);
}

TEST_CASE("of a class with more terms than can be walked, the search beats ten thousand samples", "[unit][extract]") {
    std::mt19937_64 random(3);
    const SerializedEGraph g = layered(random, 6, 4, 4);
    const TermSpace space(g, g.roots[0]);
    REQUIRE(space.count() > 1000000000);
    double sampled = 1e300;
    std::mt19937_64 draws(1);
    for (int i = 0; i < 10000; ++i) sampled = std::min(sampled, uneven(space.sample(draws)));
    const FoundTerms found = search_terms(g, g.roots[0], 1, each(uneven), {.evaluations = 2000});
    CHECK(found.best[0].cost <= sampled);
    CHECK(search_terms(g, g.roots[0], 1, each(uneven), {.evaluations = 2000}).best[0].term == found.best[0].term);  // one seed, one answer
}

TEST_CASE("what may not be taken is never named, and a cycle is no trouble", "[unit][extract]") {
    SerializedEGraph g;
    const ClassIndex c = g.add_class("c"), d = g.add_class("d"), e = g.add_class("e");
    g.add_node(c, "plain", {e}, 1), g.add_node(c, "wrap", {d}, 1), g.add_node(d, "2", {}, 1), g.add_node(d, "back", {c}, 1), g.add_node(e, "1", {}, 1);
    g.roots = {c};
    const auto found = search_terms(g, c, 8, each([](const Term& t) { return t.op().text() == "plain" ? std::numeric_limits<double>::infinity() : 1.0; }));
    REQUIRE_FALSE(found.best.empty());
    for (const RankedTerm& t : found.best) CHECK(t.term.op().text() == "wrap");
}
