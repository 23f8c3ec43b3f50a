// What the clock of a search learns from sites and networks that were timed.
#include <catch2/catch.hpp>

#include "graph/flops.hpp"
#include "graph/zoo/zoo.hpp"
#include "optimize/shape_space.hpp"
#include "optimize/site_clock.hpp"

using namespace loopegg;

namespace {

std::map<std::string, double> by_work(const Graph& graph, double slower = 1) {
    std::map<std::string, double> ms;
    for (const Node& node : graph.nodes)
        if (macs(node) > 0) ms[node.name] = static_cast<double>(macs(node)) * 1e-8 * slower;
    return ms;
}

struct Scalings {
    Graph whole = zoo_graph("resnet34-cifar10");
    ShapeSpace space{whole, sites_of(whole)};
    Graph scaled(int eighths, double depth = 1) const { return space.network(space.scaled(eighths / 8.0, depth)).value(); }
};

}  // namespace

TEST_CASE("the clock learns how much longer new sites take than their neighbours said", "[unit][optimize]") {
    const Scalings s;
    const Graph timed = s.scaled(6), next = s.scaled(4);
    SiteClock clock;
    clock.learn(s.whole, by_work(s.whole));
    const double hoped = clock.ms(timed), hoped_next = clock.ms(next);
    clock.learn(timed, by_work(timed, 1.4));
    CHECK(clock.ms(timed) > 1.25 * hoped);  // what was timed is known
    CHECK(clock.ms(next) > 1.3 * hoped_next);

    SiteClock right;
    right.learn(s.whole, by_work(s.whole));
    right.learn(timed, by_work(timed));
    CHECK(right.ms(next) == Approx(hoped_next).epsilon(0.1));  // the neighbours were right, so nothing is added
}

TEST_CASE("networks on whole vectors of channels tell the clock about such networks", "[unit][optimize]") {
    const Scalings s;
    const Graph whole_vectors = s.scaled(4), others = s.scaled(5);  // 32 and 40 of 64 channels, 64 and 80 of 128
    const Graph like_whole = s.scaled(4, 0.75), like_others = s.scaled(5, 0.75);
    SiteClock clock(32);
    for (const Graph* timed : {&s.whole, &whole_vectors, &others}) clock.learn(*timed, by_work(*timed));
    const double sites_whole = clock.ms(whole_vectors), sites_like_whole = clock.ms(like_whole);
    const double sites_others = clock.ms(others), sites_like_others = clock.ms(like_others);
    const std::pair<const Graph*, double> networks[] = {{&whole_vectors, sites_whole}, {&others, 1.3 * sites_others}};
    clock.learn_whole(networks);
    CHECK(clock.ms(like_whole) == Approx(sites_like_whole).epsilon(0.02));
    CHECK(clock.ms(like_others) == Approx(1.3 * sites_like_others).epsilon(0.08));
}
