// Layouts of values between sites: who gets blocks of channels, and what the network then computes.
#include <catch2/catch.hpp>

#include <cmath>
#include <filesystem>
#include <functional>

#include "backends/lower/default_schedule.hpp"
#include "backends/network/network.hpp"
#include "backends/network/rounding_error.hpp"
#include "backends/target/target_rules.hpp"
#include "base/error.hpp"
#include "base/places.hpp"
#include "base/scratch.hpp"
#include "graph/builder.hpp"
#include "graph/interpreter.hpp"
#include "graph/weights.hpp"
#include "nest/term/grammar.hpp"
#include "nest/term/rounding.hpp"
#include "nest/term/statement.hpp"
#include "nest/term/value.hpp"
#include "optimize/tune/algorithms.hpp"
#include "optimize/tune/layouts.hpp"
#include "rules/load.hpp"
#include "test_runs.hpp"
#include "tests/unit/backends/other_machine.hpp"

using namespace loopegg;

namespace {

// An inverted residual block as mobile networks have it, between a first convolution and a classifier with pools.
Graph mobile_block() {
    GraphBuilder b("mobile");
    const std::string first = b.relu("relu", b.conv("first", b.input("x", {1, 3, 10, 10}), {.out = 32, .kernel = 3, .padding = 1, .bias = true}));
    const std::string wide = b.relu("relu1", b.conv("expand", first, {.out = 64, .kernel = 1, .bias = true}));
    const std::string deep = b.relu("relu2", b.conv("depthwise", wide, {.out = 64, .kernel = 3, .padding = 1, .groups = 64, .bias = true}));
    const std::string sum = b.add("sum", b.conv("project", deep, {.out = 32, .kernel = 1, .bias = true}), first);
    const std::string side = b.conv("side", sum, {.out = 32, .kernel = 3, .stride = 2, .padding = 1, .groups = 2});
    const std::string pool = b.node("global_avg_pool", "pool", {b.node("max_pool", "max", {side}, {{"kernel", 2}})});
    return b.finish({b.linear("fc", b.node("flatten", "flat", {pool}), 10)});
}

// Two dense layers and what stands between dense blocks: joins, pools, and batch norms that are steps of their own. `width` is how many channels the
// second layer adds.
Graph dense_block(std::int64_t batch, std::int64_t width) {
    GraphBuilder b("dense");
    std::string x =
        b.pool("max_pool", "pool0", b.relu("relu0", b.conv("first", b.input("x", {batch, 3, 12, 12}), {.out = 32, .kernel = 3, .padding = 1})), 3, 2, 1);
    for (const auto& [layer, channels] : {std::pair<std::string, std::int64_t>{"a", 16}, {"b", width}}) {
        const std::string y = b.conv(layer + ".conv1", b.relu(layer + ".relu1", b.norm(layer + ".norm1", x)), {.out = 32, .kernel = 1});
        const std::string z = b.conv(layer + ".conv2", b.relu(layer + ".relu2", b.norm(layer + ".norm2", y)), {.out = channels, .kernel = 3, .padding = 1});
        x = b.node("concat", layer + ".cat", {x, z});
    }
    x = b.pool("avg_pool", "pool1", b.conv("thin", b.relu("relu1", b.norm("norm1", x)), {.out = 32, .kernel = 1}), 2, 2);
    const std::string mean = b.node("global_avg_pool", "mean", {b.relu("relu2", b.norm("norm2", x))});
    return b.finish({b.linear("fc", b.node("flatten", "flat", {mean}), 10)});
}

struct Blocked {
    bool input, output;
};
Blocked blocked(const Term& nest) {
    const Statement s = statement_of(nest_parts(nest).statement);
    const int input = s.buffer("I");
    return {input >= 0 && !s.buffers[static_cast<std::size_t>(input)].blocking.empty(), !s.buffers[0].blocking.empty()};
}

// A machine on which a nest takes as long as `ms` says.
class PaperMachine final : public Measurer {
public:
    explicit PaperMachine(std::function<double(const Term&)> ms) : ms_(std::move(ms)) {}
    std::vector<Measured> measure(std::span<const Candidate> candidates) override {
        std::vector<Measured> all;
        for (const Candidate& c : candidates) all.push_back({Latency{ms_(c.nest), 0, 1, c.target, true, false}, "", 0.001, false});
        return all;
    }

private:
    std::function<double(const Term&)> ms_;
};

Schedules laid_out(const Graph& graph, std::function<double(const Term&)> ms, const Schedules& before = {}, const std::string& target = "host") {
    OptimizeRequest request;
    request.target = target, request.trials = 2;
    PaperMachine machine(std::move(ms));
    ReadNetwork read;
    read.network.graph = graph;
    const TestRun test(request, std::move(read), machine);
    return with_layouts(test.run, graph, before, {request.tune_seconds, request.trials}).schedules;
}

double gains_by_blocks(const Term& nest) { return 1 - 0.3 * blocked(nest).input - 0.3 * blocked(nest).output; }

void check_against_interpreter(const Graph& graph, const Schedules& schedules) {
    const ScratchFile name(".network");
    const ScratchFolder folder(name.path().string() + ".folder");
    const Weights weights = initial_weights(graph, 1);
    compile_network({graph, weights, schedules}, find_target("host"), folder.path());
    LoadedNetwork network(folder.path());
    const Tensor x = normal_tensor(graph.inputs[0].shape, 3, "x");
    const std::vector<Tensor> got = network.run(std::vector{x});
    const std::vector<float> want = interpret(graph, weights, {{"x", x}}).at(graph.outputs[0]).values;
    REQUIRE(got[0].values.size() == want.size());
    for (std::size_t i = 0; i < want.size(); ++i) CHECK(got[0].values[i] == Approx(want[i]).margin(1e-4));
}

}  // namespace

TEST_CASE("where blocks of channels pay, all values between convolutions lie in them, and the network computes the same", "[unit][optimize]") {
    const Graph graph = mobile_block();
    const Schedules schedules = laid_out(graph, gains_by_blocks);
    const std::map<std::string, Term> nests = fused_nests(graph, schedules, find_target("host"));
    for (const auto& [site, input, output] : std::vector<std::tuple<std::string, bool, bool>>{
             {"first", false, true}, {"expand", true, true}, {"depthwise", true, true}, {"project", true, true}, {"side", true, true}, {"max", true, true}}) {
        CAPTURE(site);
        CHECK(blocked(nests.at(site)).input == input);
        CHECK(blocked(nests.at(site)).output == output);
    }
    CHECK(blocked(nests.at("pool")).input);
    check_against_interpreter(graph, schedules);
}

TEST_CASE("joins, pools and batch norms between convolutions take and give blocks", "[unit][optimize]") {
    for (const std::int64_t batch : {1, 2}) {
        CAPTURE(batch);
        const Graph graph = dense_block(batch, 48);
        const Schedules schedules = laid_out(graph, gains_by_blocks);
        const std::map<std::string, Term> nests = fused_nests(graph, schedules, find_target("host"));
        for (const char* node : {"pool0", "a.norm1", "a.conv1", "a.conv2", "b.norm1", "b.conv1", "b.conv2", "norm1", "thin", "pool1", "norm2"}) {
            CAPTURE(node);
            CHECK(blocked(nests.at(node)).input);
            CHECK(blocked(nests.at(node)).output);
        }
        CHECK(blocked(nests.at("mean")).input);
        check_against_interpreter(graph, schedules);
    }
}

TEST_CASE("a join takes blocks only if whole blocks fill each of its parts", "[unit][optimize]") {
    const Graph uneven = dense_block(1, 17);  // the second join has a part of 17 channels, so all that it holds lies as it is
    const Schedules schedules = laid_out(uneven, gains_by_blocks);
    const std::map<std::string, Term> nests = fused_nests(uneven, schedules, find_target("host"));
    for (const char* node : {"pool0", "a.conv2", "b.conv2"}) CHECK_FALSE(blocked(nests.at(node)).output);
    for (const char* node : {"a.norm1", "b.norm1", "norm1"}) CHECK_FALSE(blocked(nests.at(node)).input);
    CHECK(blocked(nests.at("first")).output);
    CHECK(blocked(nests.at("a.norm1")).output);
    check_against_interpreter(uneven, schedules);

    const Graph narrow = dense_block(1, 24);  // 24 channels are three blocks of 8, and six of 4 where vectors have four lanes
    const Schedules halves = laid_out(narrow, gains_by_blocks);
    const Statement s = statement_of(nest_parts(fused_nests(narrow, halves, find_target("host")).at("b.conv2")).statement);
    CHECK(s.buffers[0].blocking == std::vector<Blocking>{{1, std::min<std::int64_t>(8, vector_machine(find_target("host")).lanes)}});
    check_against_interpreter(narrow, halves);
}

TEST_CASE("functions of elements take blocks as they come", "[unit][optimize]") {
    GraphBuilder b("elements");
    const std::string x = b.conv("first", b.input("x", {1, 3, 8, 8}), {.out = 32, .kernel = 1, .bias = true});
    const std::string y = b.relu("relu", x), z = b.node("sigmoid", "sigmoid", {x});  // both read x, so neither is fused into its convolution
    const std::string sum = b.node("mul", "mul", {b.add("add", y, z), y});
    const Graph graph = b.finish({b.conv("last", sum, {.out = 8, .kernel = 3})});
    const Schedules schedules = laid_out(graph, gains_by_blocks);
    const std::map<std::string, Term> nests = fused_nests(graph, schedules, find_target("host"));
    CHECK(blocked(nests.at("first")).output);
    CHECK(blocked(nests.at("last")).input);
    check_against_interpreter(graph, schedules);

    const Graph seen = [] {  // the caller reads what a function of elements gives
        GraphBuilder g("seen");
        const std::string v = g.conv("first", g.input("x", {1, 3, 8, 8}), {.out = 32, .kernel = 1, .bias = true});
        const std::string w = g.relu("relu", v);
        return g.finish({g.conv("last", v, {.out = 32, .kernel = 3}), w});
    }();
    CHECK(laid_out(seen, gains_by_blocks).empty());
}

TEST_CASE("a value stays as it is where its readers lose more by blocks than its writer gains", "[unit][optimize]") {
    const Graph graph = mobile_block();
    const Schedules schedules = laid_out(graph, [](const Term& nest) {
        const bool depthwise = plain_statement(nest_parts(nest).statement)[1] == Term(64);
        return gains_by_blocks(nest) + (depthwise && blocked(nest).input ? 5 : 0);
    });
    const std::map<std::string, Term> nests = fused_nests(graph, schedules, find_target("host"));
    CHECK_FALSE(blocked(nests.at("expand")).output);
    CHECK_FALSE(blocked(nests.at("depthwise")).input);
    CHECK(blocked(nests.at("depthwise")).output);
    check_against_interpreter(graph, schedules);
    CHECK(laid_out(graph, [](const Term& nest) { return 2 - gains_by_blocks(nest); }).empty());
}

TEST_CASE("Winograd's transforms read and write blocks, too", "[unit][optimize]") {
    GraphBuilder b("winograd");
    const std::string x = b.relu("relu", b.conv("first", b.input("x", {1, 3, 9, 9}), {.out = 32, .kernel = 1, .bias = true}));
    const std::string y = b.relu("relu1", b.conv("a", x, {.out = 32, .kernel = 3, .padding = 1, .bias = true}));
    const std::string sum = b.relu("relu2", b.add("sum", b.conv("b", y, {.out = 32, .kernel = 3, .padding = 1, .bias = true}), x));
    const Graph graph = b.finish({b.conv("last", sum, {.out = 8, .kernel = 1})});
    const Target host = find_target("host");
    const RuleBook book = load_rules(shipped("rules/algorithms.rules"), {.judge = false, .deep = false});
    const std::map<std::string, Term> nests = fused_nests(graph, {}, host);
    Schedules rows;
    for (const char* site : {"a", "b"}) {
        const Term row = rows_for(nests.at(site), book, *book.find_phase("algorithms"), false).front();
        std::vector<Term> scheduled;
        for (const Term& nest : nests_of(row[1])) scheduled.push_back(arrange(nest, host));
        rows[site] = with_nests(row, scheduled);
    }
    const Schedules schedules = laid_out(graph, gains_by_blocks, rows);
    for (const char* site : {"a", "b"}) {
        REQUIRE(schedules.at(site).is("prepare", 2));
        const std::vector<Term> row = nests_of(schedules.at(site)[1]);
        CHECK(blocked(row.front()).input);
        CHECK(blocked(row.back()).output);
        CHECK(row[1] == nests_of(rows.at(site)[1])[1]);
    }
    check_against_interpreter(graph, rows);
    check_against_interpreter(graph, schedules);
}

TEST_CASE("on the i7 and the Cortex-A57 values lie in blocks, too, and the network computes the same", "[device][optimize]") {
    const Graph graph = mobile_block();
    const Weights weights = initial_weights(graph, 1);
    const Tensor x = normal_tensor(graph.inputs[0].shape, 3, "x");
    const std::vector<float> want = interpret(graph, weights, {{"x", x}}).at(graph.outputs[0]).values;
    for (const char* name : {"i7", "a57"}) {
        CAPTURE(name);
        const Target target = find_target(name);
        const Schedules schedules = laid_out(graph, gains_by_blocks, {}, name);
        CHECK(blocked(fused_nests(graph, schedules, target).at("expand")).output);
        if (!runs_here(target, "on the i7 and the Cortex-A57 values lie in blocks, too, and the network computes the same")) continue;
        const ScratchFile file(".network");
        const ScratchFolder folder(file.path().string() + ".folder");
        compile_network({graph, weights, schedules}, target, folder.path());
        const std::vector<float> got = run_for(target, folder.path(), x);
        REQUIRE(got.size() == want.size());
        for (std::size_t i = 0; i < want.size(); ++i) CHECK(got[i] == Approx(want[i]).margin(1e-4));
    }
}

TEST_CASE("sites that keep float32 keep the layouts of their values", "[unit][optimize]") {
    const Graph graph = mobile_block();
    OptimizeRequest request;
    request.trials = 2;
    PaperMachine machine([](const Term& nest) { return gains_by_blocks(nest) * (rounds_operands(nest) ? 0.5 : 1); });
    ReadNetwork read;
    read.network.graph = graph;
    TestRun test(request, std::move(read), machine);
    Target& target = test.run.target;
    target.machine.units = {{"plain", "bf16", 16, 16, 32, 2, 8, 16, 52, 8}};
    target.allowed = {"bf16"};
    const Schedules plain = fused_nests(graph, {}, find_target("host"));
    const Schedules schedules = with_layouts(test.run, graph, {}, {request.tune_seconds, request.trials}).schedules;
    const auto nests = [&](const Schedules& all) { return fused_nests(graph, all, target); };
    const std::map<std::string, Term> before = nests(schedules);
    std::set<std::string> rounded;
    for (const auto& [site, nest] : before)
        if (rounds_operands(nest)) rounded.insert(site);
    REQUIRE(rounded.size() > 1);
    CHECK(std::any_of(rounded.begin(), rounded.end(), [&](const std::string& site) { return blocked(before.at(site)).output; }));
    for (const std::set<std::string>& wide : {rounded, std::set<std::string>{*rounded.begin()}}) {
        const Schedules mixed = in_float32(wide, graph, schedules, target, plain);
        for (const auto& [site, nest] : nests(mixed)) {
            CAPTURE(site);
            CHECK(rounds_operands(nest) == (rounded.contains(site) && !wide.contains(site)));
            CHECK(blocked(nest).input == blocked(before.at(site)).input);
            CHECK(blocked(nest).output == blocked(before.at(site)).output);
        }
        if (wide == rounded) check_against_interpreter(graph, mixed);
    }
}

TEST_CASE("schedules whose layouts do not agree are a fault, not a wrong answer", "[unit][optimize]") {
    const Graph graph = mobile_block();
    Schedules schedules = laid_out(graph, gains_by_blocks);
    schedules.erase("depthwise");
    CHECK_THROWS_AS(fused_nests(graph, schedules, find_target("host")), InternalFault);
}
