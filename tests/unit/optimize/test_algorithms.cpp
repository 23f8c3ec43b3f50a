// Rows of nests that stand for a site, by the rules of algorithms.rules.
#include <catch2/catch.hpp>

#include <algorithm>

#include "backends/network/network.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/places.hpp"
#include "base/scratch.hpp"
#include "base/sexpr.hpp"
#include "graph/builder.hpp"
#include "graph/interpreter.hpp"
#include "graph/load.hpp"
#include "graph/weights.hpp"
#include "nest/domain/domain.hpp"
#include "nest/term/bilinear.hpp"
#include "nest/term/value.hpp"
#include "optimize/answer/named_sequences.hpp"
#include "optimize/audit/replay.hpp"
#include "optimize/run/run.hpp"
#include "optimize/tune/algorithms.hpp"
#include "optimize/tune/tuning.hpp"
#include "rules/load.hpp"
#include "test_runs.hpp"

using namespace loopegg;

namespace {

const std::string loops = "(at co (at ci (at oh (at ow (at kh (at kw done))))))";
Term conv(const std::string& shape) { return complete(parse_term("(nest (epilogue relu (epilogue bias (conv2d " + shape + "))) " + loops + ")")); }

std::vector<Term> rows(const Term& nest, bool strict_fp = false) {
    const RuleBook book = load_rules(shipped("rules/algorithms.rules"), {.judge = false, .deep = false});
    return rows_for(nest, book, *book.find_phase("algorithms"), strict_fp);
}

// What a user writes who has algorithms of his own: F(3,3) and F(2,5).
const std::string own_rules = R"((language nest)
    (bilinear threes :computes correlation
      :output ((1 1 1 1 0) (0 1 -1 2 0) (0 1 1 4 1))
      :weights ((1/2 0 0) (-1/2 -1/2 -1/2) (-1/6 1/6 -1/6) (1/6 1/3 2/3) (0 0 1))
      :input ((2 -1 -2 1 0) (0 -2 -1 1 0) (0 2 -3 1 0) (0 -1 0 1 0) (0 2 -1 -2 1)))
    (bilinear fives :computes correlation
      :output ((1 1 1 1 1 0) (0 1 -1 2 -2 1))
      :weights ((1/4 0 0 0 0) (-1/6 -1/6 -1/6 -1/6 -1/6) (-1/6 1/6 -1/6 1/6 -1/6) (1/24 1/12 1/6 1/3 2/3) (1/24 -1/12 1/6 -1/3 2/3) (0 0 0 0 1))
      :input ((4 0 -5 0 1 0) (0 -4 -4 1 1 0) (0 4 -4 -1 1 0) (0 -2 -1 2 1 0) (0 2 -1 -2 1 0) (0 4 0 -5 0 1)))
    (rule mine (site ?n) => (prepare (bilinear ?f ?f) (then (then (site ?i) ?p) ?o))
      :for ?f (threes fives) :for ?i (bilinear-input ?n ?f ?f) :for ?p (bilinear-products ?n ?f ?f) :for ?o (bilinear-output ?n ?f ?f))
    (phase algorithms :rules main :iterations 1 :nodes 10000))";

// A machine on which nothing but bilinear algorithms is fast.
class BilinearMachine final : public Measurer {
public:
    std::vector<Measured> measure(std::span<const Candidate> candidates) override {
        std::vector<Measured> all;
        for (const Candidate& c : candidates) {
            const std::string nest = to_string(c.nest);
            const bool direct = nest.find("5 5 1 1 2 2") != nest.npos || nest.find("3 3 1 1 1 1") != nest.npos;
            all.push_back({Latency{direct ? 10.0 : 1.0, 0, 1, c.target, true, false}, "", 0.001, false});
        }
        return all;
    }
};

}  // namespace

TEST_CASE("algorithms of a user's own rule file are proved, chosen, compiled, and compute the network", "[unit][optimize]") {
    const ScratchFile file(".rules");
    write_file(file.path(), own_rules);
    GraphBuilder b("own");
    const std::string x = b.relu("relu", b.conv("three", b.input("x", {1, 8, 11, 10}), {.out = 16, .kernel = 3, .padding = 1, .bias = true}));
    const Graph graph = b.finish({b.conv("five", x, {.out = 8, .kernel = 5, .padding = 2, .bias = true})});
    OptimizeRequest request;
    request.target = "host", request.trials = 2;
    BilinearMachine machine;
    ReadNetwork read;
    read.network = {graph, initial_weights(graph, 1), sites_of(graph)};
    TestRun test(request, std::move(read), machine);
    test.run.target.rules = file.path();
    RowChoices rows;
    const Tuning tuning = tune_network(test.run, test.run.read.network, {request.tune_seconds, request.trials}, rows);
    const Schedules schedules = best_schedules(test.run, test.run.read.network, tuning, {request.tune_seconds, request.trials});
    for (const auto& [site, taps, outputs] : {std::tuple("three", 3, 3), {"five", 5, 2}}) {
        CAPTURE(site);
        REQUIRE(schedules.at(site).is("prepare", 2));
        const auto pair = bilinear_pair(schedules.at(site)[0]);
        REQUIRE(pair);
        CHECK(pair->down.taps() == taps);
        CHECK(pair->along.outputs() == outputs);
    }
    const ScratchFile name(".network");
    const ScratchFolder folder(name.path().string() + ".folder");
    const Weights& weights = test.run.read.network.weights;
    compile_network({graph, weights, schedules}, test.run.target, folder.path());
    const Tensor input = normal_tensor(graph.inputs[0].shape, 3, "x");
    const std::vector<float> got = LoadedNetwork(folder.path()).run(std::vector{input})[0].values;
    const std::vector<float> want = interpret(graph, weights, {{"x", input}}).at(graph.outputs[0]).values;
    REQUIRE(got.size() == want.size());
    for (std::size_t i = 0; i < want.size(); ++i) CHECK(got[i] == Approx(want[i]).margin(1e-4));
}

TEST_CASE("a user's algorithm with a wrong entry stops the run, at that entry", "[unit][optimize]") {
    std::string wrong = own_rules;
    const std::size_t at = wrong.find(":input ((2 -1 -2");
    REQUIRE(at != wrong.npos);
    wrong.replace(at, 16, ":input ((2 -1 -3");
    const RuleMistake mistake = check_rules(make_source("mine.rules", wrong)).mistakes.at(0);
    CHECK(mistake.what.message.find("'threes' is not the correlation: the coefficient of tap 0 * input 2 in output 0 is -1/2, but must be 0") !=
          std::string::npos);
    CHECK(mistake.what.where.line() == 5);
    CHECK(mistake.what.where.column() == 21);
    CHECK(mistake.what.hint == "it is right with -2 here");
}

TEST_CASE("a convolution of stride 1 has a row of nests for each algorithm that takes its kernel", "[unit]") {
    CHECK(rows(conv("1 1 8 16 8 8 1 3 1 1 0 1 1 1")).size() == 2);
    CHECK(rows(conv("1 1 8 16 8 8 3 1 1 1 1 0 1 1")).size() == 2);
    CHECK(rows(conv("1 1 8 16 8 8 1 1 1 1 0 0 1 1")).empty());
    const std::vector<Term> all = rows(conv("1 1 8 16 8 8 3 3 1 1 1 1 1 1"));
    REQUIRE(all.size() == 2);
    for (const Term& row : all) {
        const std::vector<Term> nests = nests_of(row[1]);
        REQUIRE(nests.size() == 3);
        CHECK(plain_statement(nest_parts(nests[0]).statement).op().text() == "bilinear_input");
        CHECK(plain_statement(nest_parts(nests[1]).statement).op().text() == "conv2d");
        CHECK(nest_parts(nests[2]).statement.is("epilogue", 2));
        CHECK(with_nests(row, nests) == row);
    }
    CHECK(all[0][0] != all[1][0]);
}

TEST_CASE("every CPU target has rows, and no GPU has", "[unit]") {
    const Term nest = conv("1 1 8 16 8 8 3 3 1 1 1 1 1 1");
    for (const char* target : {"host", "i7", "a57"}) CHECK(Algorithms(find_target(target)).rows(nest) == rows(nest));
    for (const char* target : {"nano", "gtx1080ti", "h200"}) CHECK(Algorithms(find_target(target)).rows(nest).empty());
}

TEST_CASE("sums that must keep their order have none, nor has any other site", "[unit]") {
    CHECK(rows(conv("1 1 8 16 8 8 3 3 1 1 1 1 1 1"), true).empty());
    CHECK(rows(conv("1 1 8 16 8 8 3 3 2 2 1 1 1 1")).empty());
    CHECK(rows(complete(parse_term("(nest (linear 2 8 8) (at n (at co (at ci done))))"))).empty());
}

TEST_CASE("the checker of proofs knows a row of the chosen nest from any other", "[unit]") {
    const Term chosen = complete(parse_term("(nest (conv2d 1 1 8 16 8 8 3 3 1 1 1 1 1 1) " + loops + ")"));
    const Term other = complete(parse_term("(nest (conv2d 1 1 16 8 8 8 3 3 1 1 1 1 1 1) " + loops + ")"));
    const RuleBook book = load_rules(shipped("rules/algorithms.rules"), {.judge = false, .deep = false});
    auto site = [&](const Term& row) {
        return nlohmann::json::array({{{"name", "s"},
                                       {"original", to_string(chosen)},
                                       {"chosen", to_string(chosen)},
                                       {"proofs", nlohmann::json::array()},
                                       {"effect", domain_text(domain_of(chosen))},
                                       {"schedule", to_string(bare(row))}}});
    };
    const Term row = rows(chosen)[0];
    const auto verdict = [&](const Term& r) { return replay(site(r), book).at(0).why; };
    CHECK(verdict(row) == "");
    CHECK(verdict(rows(other)[0]).find("of the row") != std::string::npos);
    std::vector<Term> nests = nests_of(row[1]);
    std::string wrong = to_string(row[0]);
    wrong.replace(wrong.find("[-1,0,1,0|"), 10, "[-1,0,2,0|");
    CHECK(verdict(Term("prepare", {parse_term(wrong), row[1]})).find("is not the correlation") != std::string::npos);
    nests.pop_back();
    CHECK(verdict(with_nests(row, nests)).find("has not the nests") != std::string::npos);
}

namespace {

bool has_set(const std::string& architecture, const char* model, const std::string& set) {
    OptimizeRequest request;
    request.architecture = architecture;
    const RuleBook book = rules_for(request, load_graph(model));
    return std::any_of(book.sets.begin(), book.sets.end(), [&](const RuleSet& s) { return s.name == set; });
}

}  // namespace

TEST_CASE("a set serves the classes of its tags", "[unit][optimize]") {
    CHECK(has_set("residual", "zoo:resnet34-cifar10", "neural-restored"));
    CHECK_FALSE(has_set("transformer", "zoo:resnet34-cifar10", "neural-restored"));
    CHECK(has_set("transformer", "zoo:resnet34-cifar10", "networks"));
    CHECK(has_set("all", "zoo:bert-tiny", "neural-restored"));
}

TEST_CASE("the class is the detector's unless the user says another", "[unit][optimize]") {
    CHECK_FALSE(has_set("auto", "zoo:bert-tiny", "neural-restored"));
    CHECK(has_set("residual", "zoo:bert-tiny", "neural-restored"));
    CHECK_THROWS_WITH(has_set("residul", "zoo:bert-tiny", "networks"), Catch::Contains("did you mean 'residual'"));
}
