// Whole networks: the space of shapes, the search over it, and the proof of what it chose.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "base/places.hpp"
#include "base/sexpr.hpp"
#include "graph/builder.hpp"
#include "graph/flops.hpp"
#include "graph/model_json.hpp"
#include "graph/zoo/zoo.hpp"
#include "nest/term/net.hpp"
#include "optimize/network_proof.hpp"
#include "optimize/optimize.hpp"
#include "optimize/rivals.hpp"
#include "optimize/shape_search.hpp"
#include "rewrite/plan_rules.hpp"
#include "rules/load.hpp"

using namespace loopegg;

namespace {

// Loses a point for each halving of the multiplications, and nothing for the parameters: depth and width cost alike.
class ByWork : public CapacityOracle {
public:
    explicit ByWork(double most = 100) : most_(most) {}  // points that may be lost
    std::vector<Verdict> judge(const Graph& original, std::span<const Graph> variants) override {
        std::vector<Verdict> out;
        for (const Graph& v : variants) {
            const double points = std::log2(static_cast<double>(macs(original)) / static_cast<double>(macs(v)));
            const double kept = kept_at_loss(points);
            out.push_back(
                {points <= most_,
                 "by its work",
                 {{"kept", kept}, {"margin", kept - kept_at_loss(most_)}, {"loss", {{"points", points}, {"low", points - 0.1}, {"high", points + 0.1}}}}});
        }
        return out;
    }

private:
    double most_;
};

NetworkShape drawn(const ShapeSpace& space, std::mt19937_64& random) {
    NetworkShape shape;
    for (const ShapeSpace::Depth& d : space.branches())
        if (random() % 3 == 0) shape.dropped.insert(d.branch.site);
    for (const ShapeSpace::Width& w : space.widths())
        if (random() % 3 == 0) shape.widths[w.name] = w.choices[random() % w.choices.size()];
    for (const std::string& site : space.groupable())
        if (random() % 6 == 0) shape.groups[site] = 2;
    return shape;
}

SiteClock clock_of(const Graph& graph) {
    std::map<std::string, double> ms;
    for (const Node& node : graph.nodes)
        if (macs(node) > 0) ms[node.name] = static_cast<double>(macs(node)) * 1e-8;
    SiteClock clock;
    clock.learn(graph, ms);
    return clock;
}

}  // namespace

TEST_CASE("a shape is the network that its plan makes, on every kind of network", "[unit][optimize]") {
    std::mt19937_64 random(3);
    for (const char* name : {"resnet34-cifar10", "resnext29_2x64d", "densenet100-cifar10", "mobilenet_v2-cifar10", "vgg16-cifar10", "bert-tiny"}) {
        INFO(name);
        const Graph graph = zoo_graph(name);
        const ShapeSpace space(graph, sites_of(graph));
        CHECK(space.widths().size() > 1);
        for (int i = 0; i < 3; ++i) {
            const NetworkShape shape = drawn(space, random);
            const std::optional<Graph> network = space.network(shape);
            if (!network) continue;  // groups that do not divide
            CHECK(apply_plan(graph, space.plan(shape), shipped_plan_rules()) == *network);
        }
        CHECK(space.network({}).value() == graph);
    }
}

TEST_CASE("the widths that are offered are whole fours, whatever the width was, and rules say them", "[unit][optimize]") {
    GraphBuilder b("odd");
    std::string x = b.conv("first", b.input("x", {1, 3, 8, 8}), {.out = 58, .kernel = 3, .padding = 1});
    for (const std::string at : {"block0", "block1"})
        x = b.add(at + ".add", x, b.conv(at + ".b", b.relu(at + ".relu", b.conv(at + ".a", x, {.out = 116, .kernel = 1})), {.out = 58, .kernel = 1}));
    const Graph graph = b.finish({b.linear("fc", b.node("flatten", "flat", {b.node("global_avg_pool", "pool", {x})}), 10)});
    const ShapeSpace space(graph, sites_of(graph));
    NetworkShape shape;
    for (const ShapeSpace::Width& w : space.widths()) {
        for (std::int64_t kept : w.choices) CHECK((kept % 4 == 0 || kept == w.choices.back()));
        CHECK(w.choices.size() == 8);
        shape.widths[w.name] = w.choices[5];  // six eighths
    }
    REQUIRE(shape.widths.size() == 3);
    CHECK(shape.widths.at("first") == 40);
    CHECK(shape.widths.at("block0.a") == 84);
    const nlohmann::json proof = prove_shape(graph, space, shape, load_rules(shipped("rules/discover.rules")), {true, "asked", {}});
    CHECK(proof["unproven"].empty());
    CHECK(proof["steps"].size() == 3);
    CHECK(widths_offered(8) == std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7});  // the judge tries rules on networks as small as this
    CHECK(widths_offered(24) == std::vector<std::int64_t>{4, 8, 12, 16, 20});
}

TEST_CASE("naive scalings are shapes, and sites that are kept stay as they are", "[unit][optimize]") {
    const Graph graph = zoo_graph("resnet34-cifar10");
    const ShapeSpace space(graph, sites_of(graph));
    const Graph half = space.network(space.scaled(0.5, 1)).value(), shallow = space.network(space.scaled(1, 0.5)).value();
    CHECK(half.find("layer4.2.conv2")->shape[1] == 256);
    CHECK(half.find("conv1")->shape[1] == 32);
    CHECK(parameters(half) * 3 < parameters(graph));
    CHECK(shallow.find("layer1.1.conv2") != nullptr);
    CHECK(shallow.find("layer1.2.conv2") == nullptr);
    CHECK(shallow.find("layer3.3.conv2") == nullptr);
    CHECK(naive_scalings(space).size() == 24);
    const ShapeSpace kept(graph, sites_of(graph, {"layer1.*"}));
    for (const ShapeSpace::Depth& d : kept.branches()) CHECK(d.branch.site.find("layer1.") == std::string::npos);
    const Graph scaled = kept.network(kept.scaled(0.5, 0.25)).value();
    CHECK(*scaled.find("layer1.1.conv2") == *graph.find("layer1.1.conv2"));
}

TEST_CASE("branches may be dropped one after another, in any order", "[unit][optimize]") {
    std::mt19937_64 random(5);
    for (const char* name : {"resnet34-cifar10", "resnext29_2x64d", "densenet100-cifar10", "mobilenet_v2-cifar10", "bert-tiny"}) {
        INFO(name);
        const Graph graph = zoo_graph(name);
        const ShapeSpace asked_often(graph, sites_of(graph)), asked_once(graph, sites_of(graph));
        std::vector<std::string> branches;
        for (const ShapeSpace::Depth& d : asked_often.branches()) branches.push_back(d.branch.site);
        std::shuffle(branches.begin(), branches.end(), random);
        NetworkShape shape;
        std::optional<Graph> last;
        for (std::size_t i = 0; i < std::min<std::size_t>(branches.size(), 6); ++i) shape.dropped.insert(branches[i]), last = asked_often.network(shape);
        CHECK(last == asked_once.network(shape));
    }
}

TEST_CASE("the search finds a network that is no slower than any naive scaling, by the guard's own word", "[unit][optimize]") {
    const Graph graph = zoo_graph("resnet34-cifar10");
    const ShapeSpace space(graph, sites_of(graph));
    ByWork guard(1.5);
    NetworkJudge judge(guard, graph);
    Progress progress(Progress::Mode::quiet);
    ShapeSearchOptions options;
    options.budget = 80;
    const SiteClock clock = clock_of(graph);
    ShapeSearch search(space, judge, clock, options, progress);
    search.go_on(100);
    const std::vector<NetworkCandidate>& all = search.judged();
    CHECK(all.size() == 80);
    CHECK(judge.asked() == 80);
    const std::vector<std::size_t> last = finalists(all, 2);
    REQUIRE(!last.empty());
    CHECK(all[last.front()].judged.allowed);
    for (const NetworkCandidate& c : all)
        if (c.judged.allowed) CHECK(all[last.front()].ms <= c.ms);
    std::set<std::string> kinds;
    for (std::size_t i : last) kinds.insert(all[i].origin);
    for (const char* kind : {"width", "depth", "both"}) CHECK(kinds.contains(kind));
    NetworkJudge again(guard, graph);
    ShapeSearch second(space, again, clock, options, progress);
    second.go_on(100);
    REQUIRE(second.judged().size() == all.size());
    for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i].shape == second.judged()[i].shape);
}

TEST_CASE("of whole networks that were timed, those of about the same time have most say", "[unit][optimize]") {
    const Graph graph = zoo_graph("resnet34-cifar10");
    const ShapeSpace space(graph, sites_of(graph));
    const Graph half = *space.network(space.scaled(0.5, 1)), near_half = *space.network(space.scaled(0.5, 0.75));
    SiteClock clock = clock_of(graph);
    const double sites_of_all = clock.ms(graph), sites_of_half = clock.ms(half), sites_near_half = clock.ms(near_half);
    const std::pair<const Graph*, double> wholes[] = {{&graph, sites_of_all}, {&half, 1.5 * sites_of_half}};
    clock.learn_whole(wholes);
    CHECK(clock.ms(graph) == Approx(sites_of_all).epsilon(0.02));
    CHECK(clock.ms(half) == Approx(1.5 * sites_of_half).epsilon(0.02));
    CHECK(clock.ms(near_half) > 1.4 * sites_near_half);
}

TEST_CASE("how long whole networks take beside their sites does not lead the search", "[unit][optimize]") {
    const Graph graph = zoo_graph("resnet34-cifar10");
    const ShapeSpace space(graph, sites_of(graph));
    const auto judged_beside = [&](double ratio) {
        ByWork oracle(1.0);
        NetworkJudge judge(oracle, graph);
        Progress progress(Progress::Mode::quiet);
        ShapeSearchOptions options;
        options.seed = 3, options.budget = 60;
        SiteClock clock = clock_of(graph);
        ShapeSearch search(space, judge, clock, options, progress);
        search.go_on(30);
        for (std::size_t i = 0; i < search.judged().size(); i += 2) search.judged()[i].timed = true;  // these breed on beside the others
        const std::pair<const Graph*, double> whole[] = {{&graph, ratio * clock.ms(graph)}};
        clock.learn_whole(whole);
        search.set_the_clock();
        search.go_on(30);
        std::vector<NetworkShape> shapes;
        for (const NetworkCandidate& c : search.judged()) shapes.push_back(c.shape);
        return shapes;
    };
    const std::vector<NetworkShape> once = judged_beside(1.1);
    REQUIRE(once.size() > 40);
    CHECK(judged_beside(1.6) == once);
    CHECK(judged_beside(0.7) == once);
}

TEST_CASE("a guard that tells by sizes what it will say is asked about better networks", "[unit][optimize]") {
    struct BySize final : ByWork {
        using ByWork::ByWork;
        std::vector<double> kept_by_size(const Graph& original, std::span<const Graph> variants) override {
            std::vector<double> kept;
            for (const Verdict& v : judge(original, variants)) kept.push_back(v.evidence["kept"]);
            return kept;
        }
    };
    // The last stage takes more time than its work tells: a search that sees this takes the work from there.
    const Graph graph = zoo_graph("resnet34-cifar10");
    const ShapeSpace space(graph, sites_of(graph));
    std::map<std::string, double> ms;
    for (const Node& node : graph.nodes)
        if (macs(node) > 0) ms[node.name] = static_cast<double>(macs(node)) * (node.name.starts_with("layer4") ? 5e-8 : 1e-8);
    SiteClock clock;
    clock.learn(graph, ms);
    const auto fastest = [&](CapacityOracle& guard) {
        NetworkJudge judge(guard, graph);
        Progress progress(Progress::Mode::quiet);
        ShapeSearchOptions options;
        options.budget = 48;
        ShapeSearch search(space, judge, clock, options, progress);
        search.go_on(48);
        double naive = 1e9, own = 1e9;
        for (const NetworkCandidate& c : search.judged())
            if (c.judged.allowed) (c.naive() ? naive : own) = std::min(c.naive() ? naive : own, c.ms);
        return std::pair(naive, own);
    };
    BySize told(1.0);
    ByWork untold(1.0);
    const auto [naive, own] = fastest(told);
    CHECK(own < 0.8 * naive);
    CHECK(own < fastest(untold).second);
}

TEST_CASE("a shape without what is dropped anyway is the same network, and a search judges no network twice", "[unit][optimize]") {
    const Graph graph = zoo_graph("resnet34-cifar10");
    const ShapeSpace space(graph, sites_of(graph));
    std::mt19937_64 random(11);
    for (int i = 0; i < 30; ++i) {
        const NetworkShape shape = drawn(space, random), reduced = space.reduced(shape);
        CHECK(space.reduced(reduced) == reduced);
        const auto before = space.network(shape), after = space.network(reduced);
        REQUIRE(before.has_value() == after.has_value());
        if (before) CHECK(write_model(*before) == write_model(*after));
    }
    ByWork guard;
    NetworkJudge judge(guard, graph);
    Progress progress(Progress::Mode::quiet);
    const SiteClock clock = clock_of(graph);
    ShapeSearch search(space, judge, clock, {.budget = 120, .max_ms = clock.ms(graph) / 3}, progress);
    search.go_on(120);
    std::set<std::string> texts;
    for (const NetworkCandidate& c : search.judged())
        if (!c.naive()) CHECK(texts.insert(write_model(c.graph)).second);
}

TEST_CASE("the distance of two shapes is zero for equal ones, the same both ways, and grows with what differs", "[unit][optimize]") {
    const Graph graph = zoo_graph("resnet34-cifar10");
    const ShapeSpace space(graph, sites_of(graph));
    std::mt19937_64 random(5);
    for (int i = 0; i < 50; ++i) {
        const NetworkShape a = drawn(space, random), b = drawn(space, random), c = drawn(space, random);
        CHECK(space.distance(a, a) == 0);
        CHECK(space.distance(a, b) == space.distance(b, a));
        CHECK(space.distance(a, c) <= space.distance(a, b) + space.distance(b, c) + 1e-9);
    }
    NetworkShape one, two;
    one.dropped = {"layer1.1.conv2"}, two.dropped = {"layer1.1.conv2", "layer1.2.conv2"};
    CHECK(space.distance({}, one) < space.distance({}, two));
    CHECK(space.distance(one, two) > 0);
}

TEST_CASE("finalists that users train are unlike each other", "[unit][optimize]") {
    const Graph graph = zoo_graph("resnet34-cifar10");
    const ShapeSpace space(graph, sites_of(graph));
    const SiteClock clock = clock_of(graph);
    // The distance of the nearest pair among five finalists.
    const auto nearest = [&](double spread) {
        ByWork guard;
        NetworkJudge judge(guard, graph);
        Progress progress(Progress::Mode::quiet);
        ShapeSearchOptions options;
        options.budget = 200, options.max_ms = clock.ms(graph) / 3, options.spread = spread;
        ShapeSearch search(space, judge, clock, options, progress);
        search.go_on(static_cast<std::int64_t>(naive_scalings(space).size()));
        std::vector<NetworkShape> timed;
        while (timed.size() < 5) {
            search.go_on(12);
            const std::vector<std::size_t> last = finalists(search.judged(), 1, options.max_ms);
            const auto next = std::find_if(last.begin(), last.end(), [&](std::size_t i) { return !search.judged()[i].naive(); });
            REQUIRE(next != last.end());
            search.judged()[*next].timed = true;
            timed.push_back(search.judged()[*next].shape);
            search.set_the_clock();
        }
        double least = 1e9;
        for (std::size_t i = 0; i < timed.size(); ++i)
            for (std::size_t j = 0; j < i; ++j) least = std::min(least, space.distance(timed[i], timed[j]));
        return least;
    };
    CHECK(nearest(0.25) > nearest(0));
}

TEST_CASE("a limit as a speed-up follows the original, and a limit in milliseconds does not", "[unit][optimize]") {
    OptimizeRequest request;
    CHECK_FALSE(request.limits_time());
    CHECK(request.allowed_ms(9) == std::numeric_limits<double>::infinity());
    request.min_speedup = 3;
    CHECK(request.limits_time());
    CHECK(request.allowed_ms(9) == Approx(3));
    CHECK(request.allowed_ms(12) == Approx(4));
    request.max_latency_ms = 3.5;
    CHECK(request.allowed_ms(9) == Approx(3));
    CHECK(request.allowed_ms(12) == Approx(3.5));

    const Graph graph = zoo_graph("resnet34-cifar10");
    const ShapeSpace space(graph, sites_of(graph));
    const SiteClock clock = clock_of(graph);
    ByWork guard;
    NetworkJudge judge(guard, graph);
    Progress progress(Progress::Mode::quiet);
    ShapeSearchOptions options;
    options.budget = 120, options.max_ms = clock.ms(graph) / 4;
    ShapeSearch search(space, judge, clock, options, progress);
    search.go_on(60);
    const double slower = clock.ms(graph) / 1.5;  // the original takes longer now
    search.allow_ms(slower);
    const std::size_t before = search.judged().size();
    search.go_on(60);
    const auto in_the_new_room = [&](const NetworkCandidate& c) { return c.ms > options.max_ms * 1.1 && c.ms <= slower; };
    CHECK(std::any_of(search.judged().begin() + static_cast<std::ptrdiff_t>(before), search.judged().end(), in_the_new_room));
}

TEST_CASE("the clock tells of a site what sites of about as many channels took", "[unit][optimize]") {
    const Graph graph = zoo_graph("resnet34-cifar10");
    const ShapeSpace space(graph, sites_of(graph));
    const Graph half = space.network(space.scaled(0.5, 1)).value();
    std::map<std::string, double> ms, slow;
    for (const Node& node : graph.nodes)
        if (macs(node) > 0) ms[node.name] = 1, slow[node.name] = 0.8;  // half the width saves a fifth of the time only
    SiteClock clock;
    clock.learn(graph, ms);
    const double before = clock.ms(half), sites = static_cast<double>(ms.size());
    CHECK(clock.ms(graph) == Approx(sites));
    CHECK(before < 0.4 * sites);
    clock.learn(half, slow);
    CHECK(clock.ms(half) == Approx(0.8 * sites).epsilon(0.01));
    CHECK(clock.ms(graph) == Approx(sites).epsilon(0.01));
    CHECK(clock.ms(space.network(space.scaled(0.625, 1)).value()) > 0.8 * sites);  // nearer to the half than to the whole
}

TEST_CASE("one lucky time does not carry the clock", "[unit][optimize]") {
    const Graph graph = zoo_graph("resnet34-cifar10");
    const ShapeSpace space(graph, sites_of(graph));
    const auto eighths = [&](int kept) { return space.network(space.scaled(kept / 8.0, 1)).value(); };
    const auto by_work = [](const Graph& network, double rate) {
        std::map<std::string, double> ms;
        for (const Node& node : network.nodes)
            if (macs(node) > 0) ms[node.name] = rate * static_cast<double>(macs(node));
        return ms;
    };
    SiteClock clock;
    for (int kept : {8, 7, 5, 4}) clock.learn(eighths(kept), by_work(eighths(kept), 1));
    const double before = clock.ms(eighths(6));
    clock.learn(eighths(6), by_work(eighths(6), 0.5));
    CHECK(clock.ms(eighths(6)) > 0.55 * before);
    CHECK(clock.ms(eighths(6)) < before);
}

TEST_CASE("rivals keep to their own menus", "[unit][optimize]") {
    const Graph graph = zoo_graph("resnet34-cifar10");
    const ShapeSpace space(graph, sites_of(graph));
    ByWork guard;
    NetworkJudge judge(guard, graph);
    Progress progress(Progress::Mode::quiet);
    ShapeSearchOptions options;
    options.budget = 20;
    const std::vector<NetworkCandidate> random = random_configurations({space, judge, clock_of(graph)}, options, progress);
    CHECK(random.size() == 20);
    for (const NetworkCandidate& c : random) CHECK(c.shape.dropped.empty());
    options.max_ms = clock_of(graph).ms(graph) / 2;
    const std::vector<NetworkCandidate> blocks = block_swaps({space, judge, clock_of(graph)}, options, progress);
    REQUIRE(!blocks.empty());
    for (const NetworkCandidate& c : blocks) CHECK(c.ms <= options.max_ms);
    CHECK(blocks.front().judged.loss.points <= blocks.back().judged.loss.points);  // the largest score first
}

namespace {

// Every layer reads the first one and all layers before it: by one join of all of them, or by a join of the join before and the last layer.
Graph dense_network(int layers, bool by_pairs) {
    nlohmann::json nodes = nlohmann::json::array(), all = nlohmann::json::array({"first"});
    const auto convolution = [&](const std::string& name, const std::string& from) {
        nodes.push_back({{"name", name}, {"op", "conv2d"}, {"inputs", {from}}, {"attrs", {{"out_channels", 4}, {"kernel", {3, 3}}, {"padding", {1, 1}}}}});
    };
    convolution("first", "input");
    std::string before = "first";
    for (int i = 0; i < layers; ++i) {
        const std::string name = "layer" + std::to_string(i), join = "join" + std::to_string(i);
        convolution(name, before);
        all.push_back(name);
        const nlohmann::json pair{before, name};
        nodes.push_back({{"name", join}, {"op", "concat"}, {"inputs", by_pairs ? pair : all}, {"attrs", {{"axis", 1}}}});
        before = join;
    }
    const nlohmann::json input{{"name", "input"}, {"shape", {1, 3, 8, 8}}, {"dtype", "float32"}};
    return read_model(
        make_source("dense.json", nlohmann::json{{"loopegg", 1}, {"name", "dense"}, {"inputs", {input}}, {"nodes", nodes}, {"outputs", {before}}}.dump()));
}

}  // namespace

TEST_CASE("a dense block is the same term, with each site once, however its joins are spelled", "[unit][optimize]") {
    constexpr int layers = 40;  // a term that grew with the ways through the network would have 2^40 sites
    const Net joined = net_of(dense_network(layers, false));
    CHECK(layers_of(joined.term).size() == layers + 1);
    CHECK(joined.place.size() == layers + 1);
    CHECK(joined.term == net_of(dense_network(layers, true)).term);
}

TEST_CASE("branches that share a site are a tangle that holds it once", "[unit][optimize]") {
    const Graph graph =
        read_model(make_source("shared.json", R"({"loopegg": 1, "name": "shared", "inputs": [{"name": "input", "shape": [1, 3, 8, 8], "dtype": "float32"}],
        "nodes": [{"name": "a", "op": "conv2d", "inputs": ["input"], "attrs": {"out_channels": 4, "kernel": [1, 1]}},
                  {"name": "b", "op": "conv2d", "inputs": ["a"], "attrs": {"out_channels": 4, "kernel": [1, 1]}},
                  {"name": "c", "op": "conv2d", "inputs": ["a"], "attrs": {"out_channels": 4, "kernel": [1, 1]}},
                  {"name": "d", "op": "conv2d", "inputs": ["c"], "attrs": {"out_channels": 4, "kernel": [1, 1]}},
                  {"name": "e", "op": "concat", "inputs": ["b", "d", "c"], "attrs": {"axis": 1}}],
        "outputs": ["e"]})"));
    const Net net = net_of(graph);
    CHECK(layers_of(net.term).size() == 4);
    CHECK(to_string(net.term).find("(tangle") != std::string::npos);
}

TEST_CASE("a network as a term has the sites of its graph, and every step of a shape is proven over it", "[unit][optimize]") {
    const RuleBook book = load_rules(shipped("rules/discover.rules"));
    std::mt19937_64 random(5);
    for (const char* name : {"resnet34-cifar10", "resnext29_2x64d", "densenet100-cifar10", "mobilenet_v2-cifar10", "vgg16-cifar10"}) {
        INFO(name);
        const Graph graph = zoo_graph(name);
        const Sites sites = sites_of(graph);
        CHECK(layers_of(net_of(graph).term).size() == sites.all.size());
        const ShapeSpace space(graph, sites);
        NetworkShape shape = drawn(space, random);
        shape.groups.clear();
        const Graph network = space.network(shape).value();
        nlohmann::json proof = prove_shape(graph, space, shape, book, {true, "asked", {}}), starts = nlohmann::json::array();
        for (const Site& s : sites_of(network).all) starts.push_back({{"name", s.name}, {"original", to_string(Term("nest", {s.statement, Term("done")}))}});
        std::size_t steps = 0;
        CHECK(network_fault(proof, starts, book, steps) == "");
        CHECK(steps == proof["steps"].size());
        // A proof that says something else does not hold.
        nlohmann::json other = starts;
        other.erase(other.begin());
        CHECK(network_fault(proof, other, book, steps) != "");
        proof["proofs"].erase(proof["proofs"].begin());
        CHECK(network_fault(proof, starts, book, steps) != "");
    }
}
