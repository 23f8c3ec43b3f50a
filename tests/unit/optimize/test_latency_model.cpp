// What the latency model learns from sites and networks that were timed.
#include <catch2/catch.hpp>

#include "graph/builder.hpp"
#include "graph/flops.hpp"
#include "optimize/search/latency_model.hpp"

using namespace loopegg;

namespace {

std::map<std::string, double> by_work(const Graph& graph, double slower = 1) {
    std::map<std::string, double> ms;
    for (const Node& node : graph.nodes)
        if (macs(node) > 0) ms[node.name] = static_cast<double>(macs(node)) * 1e-8 * slower;
    return ms;
}

// A plain network whose widths and depth are shares of 64 channels and of eight layers a stage.
Graph scaled(int eighths, int layers = 8) {
    GraphBuilder b("scaled");
    std::string x = b.input("image", {1, 3, 32, 32});
    for (int stage = 0; stage < 3; ++stage)
        for (int layer = 0; layer < layers; ++layer) {
            const std::string number = std::to_string(stage) + "." + std::to_string(layer);
            const std::int64_t stride = stage > 0 && layer == 0 ? 2 : 1;
            x = b.relu("relu" + number, b.conv("conv" + number, x, {.out = (std::int64_t{8} << stage) * eighths, .kernel = 3, .stride = stride, .padding = 1}));
        }
    return b.finish({x});
}

}  // namespace

TEST_CASE("the latency model learns how much longer new sites take than their neighbours said", "[unit][optimize]") {
    const Graph whole = scaled(8), timed = scaled(6), next = scaled(4);
    LatencyModel model;
    model.learn(whole, by_work(whole));
    const double hoped = model.ms(timed), hoped_next = model.ms(next);
    model.learn(timed, by_work(timed, 1.4));
    CHECK(model.ms(timed) > 1.25 * hoped);  // what was timed is known
    CHECK(model.ms(next) > 1.3 * hoped_next);

    LatencyModel right;
    right.learn(whole, by_work(whole));
    right.learn(timed, by_work(timed));
    CHECK(right.ms(next) == Approx(hoped_next).epsilon(0.1));  // the neighbours were right, so nothing is added
}

TEST_CASE("a convolution of a kind that was never timed takes as long for its work as others", "[unit][optimize]") {
    const Graph timed = scaled(8);
    LatencyModel model;
    model.learn(timed, by_work(timed));
    GraphBuilder b("pointwise");
    const Graph other = b.finish({b.conv("restore", b.input("image", {1, 32, 32, 32}), {.out = 64, .kernel = 1})});
    CHECK(model.ms(other) == Approx(by_work(other).at("restore")));
}

TEST_CASE("networks on whole vectors of channels predict such networks", "[unit][optimize]") {
    const Graph whole = scaled(8), whole_vectors = scaled(4), others = scaled(5);  // 32 and 40 of 64 channels, 64 and 80 of 128
    const Graph like_whole = scaled(4, 6), like_others = scaled(5, 6);
    LatencyModel model(32);
    for (const Graph* timed : {&whole, &whole_vectors, &others}) model.learn(*timed, by_work(*timed));
    const double sites_whole = model.ms(whole_vectors), sites_like_whole = model.ms(like_whole);
    const double sites_others = model.ms(others), sites_like_others = model.ms(like_others);
    const std::pair<const Graph*, double> networks[] = {{&whole_vectors, sites_whole}, {&others, 1.3 * sites_others}};
    model.learn_networks(networks);
    CHECK(model.ms(like_whole) == Approx(sites_like_whole).epsilon(0.02));
    CHECK(model.ms(like_others) == Approx(1.3 * sites_like_others).epsilon(0.08));
}
