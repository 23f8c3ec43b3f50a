// What a run may be asked to improve, what the latency model learns, how accuracies choose a network, and how sequences are named.
#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

#include "backends/measure/sensors.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/sexpr.hpp"
#include "graph/builder.hpp"
#include "graph/flops.hpp"
#include "optimize/answer/named_sequences.hpp"
#include "optimize/run/objective.hpp"
#include "optimize/search/latency_model.hpp"
#include "optimize/tune/choose.hpp"

using namespace loopegg;

TEST_CASE("an objective that nothing here measures is refused with a reason", "[unit][optimize]") {
    const Target host = find_target("host"), nano = find_target("nano");
    CHECK(objective_for("p99", host) == Objective::p99);
    CHECK(objective_for("memory", nano) == Objective::memory);
    CHECK_THROWS_WITH(objective_for("p99", nano), Catch::Contains("needs a target that runs on this machine"));
    CHECK_THROWS_WITH(objective_for("latecny", host), Catch::Contains("did you mean 'latency'"));
    if (Sensors{}.energy().empty()) CHECK_THROWS_WITH(objective_for("energy", host), Catch::Contains("this machine reports no energy"));
}

TEST_CASE("each objective looks at its own figure", "[unit][optimize]") {
    NetworkRecord n;
    n.files.arena_bytes = 1'000'000, n.files.weight_bytes = 2'000'000, n.files.seconds = 4;
    CHECK_FALSE(figure_of(Objective::latency, n));
    CHECK(figure_words(Objective::latency, n) == "no figure");
    n.time.latency = Latency{3, 0.1, 9, "host", true, false};
    n.profile = NetworkProfile{2.5, 9, 100, 400, 50, {}, {}};
    CHECK(figure_of(Objective::latency, n) == 3);
    CHECK(figure_of(Objective::p99, n) == 9);
    CHECK(figure_of(Objective::throughput, n) == -400);
    CHECK_FALSE(figure_of(Objective::energy, n));
    CHECK(figure_words(Objective::memory, n) == "3.00 MB of weights and activations");
    CHECK(figure_of(Objective::compile, n) == 4);
}

TEST_CASE("energy and temperature are read where a machine tells them", "[unit][optimize]") {
    const std::filesystem::path root = std::filesystem::temp_directory_path() / "loopegg-sensors";
    std::filesystem::remove_all(root);
    auto put = [&](const std::string& name, const std::string& text) {
        std::filesystem::create_directories((root / name).parent_path());
        write_file(root / name, text);
    };
    const Sensors sensors{root / "powercap", root / "hwmon", root / "thermal"};
    CHECK(sensors.energy().empty());
    CHECK_FALSE(sensors.temperature());
    CHECK_FALSE(sensors.joules({}, {}));
    put("powercap/intel-rapl:0/energy_uj", "9000000\n"), put("powercap/intel-rapl:0/max_energy_range_uj", "10000000\n"),
        put("powercap/intel-rapl:0/name", "package-0\n");
    put("powercap/intel-rapl:0:0/energy_uj", "5\n"), put("powercap/intel-rapl:0:0/name", "core\n");
    put("powercap/intel-rapl:0:1/energy_uj", "2000000\n"), put("powercap/intel-rapl:0:1/name", "dram\n");
    put("hwmon/hwmon0/name", "coretemp\n"), put("hwmon/hwmon0/temp1_input", "47000\n"), put("hwmon/hwmon0/temp2_input", "51000\n");
    put("hwmon/hwmon1/name", "nvme\n"), put("hwmon/hwmon1/temp1_input", "80000\n");
    const auto before = sensors.energy();
    REQUIRE(before.size() == 2);
    put("powercap/intel-rapl:0/energy_uj", "1000000\n"), put("powercap/intel-rapl:0:1/energy_uj", "2500000\n");
    CHECK(*sensors.joules(before, sensors.energy()) == Approx(2.5));  // 2 J around the counter's end, and half a joule of memory
    CHECK(*sensors.temperature() == 51);
    std::filesystem::remove_all(root);
}

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

namespace {

// Every combination, the slow and obvious way.
std::optional<double> best_by_trying(const std::vector<std::vector<NodeOption>>& nodes) {
    std::optional<double> best;
    std::vector<std::size_t> pick(nodes.size(), 0);
    while (true) {
        double ms = 0;
        bool together = true;
        for (std::size_t n = 0; n < nodes.size(); ++n) {
            const NodeOption& o = nodes[n][pick[n]];
            ms += o.ms;
            for (const NodeOption::Company& with : o.only_with) together = together && std::ranges::count(with.options, pick[with.node]) > 0;
        }
        if (together && (!best || ms < *best)) best = ms;
        std::size_t n = 0;
        while (n < nodes.size() && ++pick[n] == nodes[n].size()) pick[n++] = 0;
        if (n == nodes.size()) return best;
    }
}

}  // namespace

TEST_CASE("the choice is the best of all choices", "[unit][optimize][property]") {
    CHECK(rc::check("against trying them all", [] {
        std::vector<std::vector<NodeOption>> nodes(static_cast<std::size_t>(*rc::gen::inRange(1, 5)));
        for (auto& options : nodes) {
            options.resize(static_cast<std::size_t>(*rc::gen::inRange(1, 4)));
            for (NodeOption& o : options) o.ms = *rc::gen::inRange(1, 100) / 8.0;
        }
        for (std::size_t n = 0; n + 1 < nodes.size(); ++n)  // any option of a node may depend on the two nodes after it
            for (std::size_t other = n + 1; other < std::min(n + 3, nodes.size()); ++other)
                for (NodeOption& option : nodes[n])
                    if (*rc::gen::arbitrary<bool>()) {
                        NodeOption::Company company{other, {}};
                        for (std::size_t o = 0; o < nodes[other].size(); ++o)
                            if (*rc::gen::arbitrary<bool>()) company.options.push_back(o);
                        option.only_with.push_back(company);
                    }
        const auto expected = best_by_trying(nodes);
        const auto got = choose(nodes);
        RC_ASSERT(expected.has_value() == got.has_value());
        if (!expected) return;
        RC_ASSERT(std::abs(*expected - got->ms) < 1e-6);
        double sum = 0;
        for (std::size_t n = 0; n < nodes.size(); ++n) sum += nodes[n].at(got->picked[n]).ms;
        RC_ASSERT(std::abs(sum - got->ms) < 1e-6);
    }));
}

TEST_CASE("a network without nodes has an empty choice", "[unit][optimize]") { CHECK(choose({})->picked.empty()); }

namespace {
DigitPair diagonal(const char* a, std::int64_t a_stride, const char* b, std::int64_t b_stride, std::int64_t groups) {
    return {{a, a_stride, groups}, {b, b_stride, groups}};
}
DigitRange keep(const char* axis, std::int64_t stride, std::int64_t radix, std::int64_t lo, std::int64_t hi) { return {{axis, stride, radix}, lo, hi}; }
}  // namespace

TEST_CASE("an effect has the name that people know it by", "[unit][optimize]") {
    CHECK(effect_name({}, 64) == "dense");
    CHECK(effect_name({{{{}, {diagonal("co", 16, "ci", 16, 4)}}}}, 64) == "group");
    CHECK(effect_name({{{{}, {diagonal("co", 1, "ci", 1, 64)}}}}, 64) == "depthwise");
    CHECK(effect_name({{{{keep("ci", 1, 64, 0, 32)}, {}}}}, 64) == "bottleneck");
    CHECK(effect_name({{{{keep("oh", 1, 2, 0, 1)}, {}}}, Restore::repeat}, 64) == "spatial-bottleneck");
    CHECK(effect_name({{{{keep("co", 1, 64, 0, 16)}, {}}}, Restore::pointwise}, 64) == "pointwise");
    CHECK(effect_name({{{{keep("co", 1, 64, 0, 16), keep("kh", 1, 3, 0, 1)}, {}}}, Restore::pointwise}, 64) == "unnamed");
    CHECK(effect_name({{{{}, {diagonal("oh", 16, "ci", 32, 2)}}}}, 64) == "spatial-group");
    DomainPart dense{{keep("co", 32, 2, 0, 1)}, {}};
    DomainPart by2{{keep("co", 32, 2, 0, 1)}, {diagonal("co", 16, "ci", 32, 2)}};
    DomainPart by4{{keep("co", 32, 2, 1, 2)}, {diagonal("co", 8, "ci", 16, 4)}};
    CHECK(effect_name({{dense, by4}}, 64) == "part-group");
    CHECK(effect_name({{by2, by4}}, 64) == "mixed-group");
    CHECK(effect_name({{{{keep("ci", 1, 64, 0, 32)}, {diagonal("co", 16, "ci", 8, 4)}}}}, 64) == "unnamed");
}

TEST_CASE("the paper's sequences are recognised by the steps that led to a variant", "[unit][optimize]") {
    const DerivationStep split{"split-loop", false, {{"?a", parse_term("oh:32")}, {"?k", parse_term("16")}}, {}, {}},
        cut{"cut-domain", false, {{"?a", parse_term("co:64")}, {"?k", parse_term("32")}}, {}, {}};
    const auto group = [](const char* rule, const char* a, const char* b, const char* groups) {
        return DerivationStep{rule, true, {{"?a", parse_term(a)}, {"?b", parse_term(b)}, {"?g", parse_term(groups)}}, {}, {}};
    };
    const DerivationStep first = group("group-first-part", "(span co:64 0 32)", "ci:64", "2"),
                         second = group("group-second-part", "(span co:64 32 64)", "ci:64", "4");
    CHECK(paper_sequence({split, group("group-axes", "(quo oh:32 16)", "ci:64", "2")}) == "S1");
    CHECK(paper_sequence({cut, first}) == "S2");
    CHECK(paper_sequence({cut, second}) == "S2");
    CHECK(paper_sequence({cut, second, first}) == "S3");
    CHECK(paper_sequence({}).empty());
    CHECK(paper_sequence({group("group-axes", "co:64", "ci:64", "2")}).empty());
    CHECK(paper_sequence({first}).empty());                                                          // no part was cut
    CHECK(paper_sequence({cut, first, group("group-second-part", "co:64", "ci:64", "2")}).empty());  // the paper's parts have other groups
    CHECK(paper_sequence({cut, first, DerivationStep{"bottleneck-second-part", true, {{"?a", parse_term("ci:64")}}, {}, {}}}).empty());
}
