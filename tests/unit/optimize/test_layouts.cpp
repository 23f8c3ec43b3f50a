// Layouts of values between sites: who gets blocks of channels, and what the network then computes.
#include <catch2/catch.hpp>

#include <cmath>
#include <filesystem>
#include <functional>

#include "backends/lower/default_schedule.hpp"
#include "backends/network/network.hpp"
#include "base/error.hpp"
#include "base/places.hpp"
#include "base/scratch.hpp"
#include "graph/builder.hpp"
#include "graph/interpreter.hpp"
#include "graph/weights.hpp"
#include "nest/term/grammar.hpp"
#include "nest/term/statement.hpp"
#include "nest/term/value.hpp"
#include "optimize/algorithms.hpp"
#include "optimize/layouts.hpp"
#include "rules/load.hpp"

using namespace loopegg;

namespace {

// An inverted residual block as mobile networks have it, between a first convolution and a classifier. `side` is a value that something else than a
// convolution reads, too.
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

Schedules laid_out(const Graph& graph, std::function<double(const Term&)> ms, const Schedules& before = {}) {
    OptimizeRequest request;
    request.target = "host", request.trials = 2;
    PaperMachine machine(std::move(ms));
    Progress quiet(Progress::Mode::quiet);
    return with_layouts(request, graph, before, find_target("host"), machine, quiet);
}

double gains_by_blocks(const Term& nest) { return 1 - 0.3 * blocked(nest).input - 0.3 * blocked(nest).output; }

void check_against_interpreter(const Graph& graph, const Schedules& schedules) {
    const ScratchFile name(".network");
    const ScratchFolder folder(name.path().string() + ".folder");
    const Weights weights = initial_weights(graph, 1);
    compile_network(graph, weights, schedules, find_target("host"), folder.path());
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
             {"first", false, true}, {"expand", true, true}, {"depthwise", true, true}, {"project", true, true}, {"side", true, false}}) {
        CAPTURE(site);
        CHECK(blocked(nests.at(site)).input == input);
        CHECK(blocked(nests.at(site)).output == output);  // what a pool reads stays as it is
    }
    check_against_interpreter(graph, schedules);
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

TEST_CASE("schedules whose layouts do not agree are a fault, not a wrong answer", "[unit][optimize]") {
    const Graph graph = mobile_block();
    Schedules schedules = laid_out(graph, gains_by_blocks);
    schedules.erase("depthwise");
    CHECK_THROWS_AS(fused_nests(graph, schedules, find_target("host")), InternalFault);
}
