// The shipped rules over nests: read, checked and tried.
#include <catch2/catch.hpp>

#include "nest/facts.hpp"
#include "nest/space.hpp"
#include "base/sexpr.hpp"
#include "egraph/runner.hpp"
#include "rules/load.hpp"

using namespace loopegg;

namespace {

std::string mistakes_of(const Loaded& loaded) {
    std::string text;
    for (const RuleMistake& m : loaded.mistakes) text += describe(m.what) + "\n";
    return text;
}

struct Grown {
    EGraph graph;
    std::shared_ptr<NestAnalysis> facts;
    RunReport report;
    ClassId root = 0;
};

std::unique_ptr<Grown> grow(const RuleBook& book, const std::vector<std::string>& names, const Term& nest, RunOptions options, NestAnalysis::Options strict = {}) {
    auto g = std::make_unique<Grown>();
    g->facts = std::make_shared<NestAnalysis>(strict);
    g->graph.attach(g->facts);
    g->root = g->graph.add(nest);
    std::vector<const Rule*> rules;
    for (const std::string& name : names) {
        const Rule* rule = book.find_rule(name);
        REQUIRE(rule != nullptr);
        rules.push_back(rule);
    }
    Runner runner(g->graph, bind_rules(rules, {g->facts, {}}));
    g->report = runner.run(options);
    return g;
}

}  // namespace

TEST_CASE("the shipped rules over nests are sound", "[rules]") {
    for (const char* file : {"structure", "neural", "discover", "exact", "tune-cpu", "tune-gpu"}) {
        Loaded loaded = check_rules(std::filesystem::path(LOOPEGG_RULES) / (std::string(file) + ".rules"));
        INFO(file << "\n" << mistakes_of(loaded));
        CHECK(loaded.mistakes.empty());
        CHECK(loaded.book.rule_count() > 0);
    }
}

TEST_CASE("six loops in every order are 2^6 classes and 720 lists", "[rules]") {
    RuleBook book = load_rules(std::filesystem::path(LOOPEGG_RULES) / "structure.rules", {.judge = false});
    Term nest = nest_of(statement_of(parse_term("(conv2d 1 1 64 64 32 32 3 3 1 1 1 1 1 1)")));
    auto g = grow(book, {"swap-loops"}, nest, {});
    CHECK(g->report.stop == StopReason::saturated);
    std::size_t schedules = 0;
    for (ClassId c : g->graph.classes()) schedules += g->facts->schedule(c) != nullptr;
    CHECK(schedules == 64);
    CHECK(TermSpace(g->graph).count(g->root) == 720);
}

TEST_CASE("the tune set of the host holds a billion schedules of a convolution in little room", "[rules]") {
    RuleBook book = load_rules(std::filesystem::path(LOOPEGG_RULES) / "tune-cpu.rules", {.judge = false});
    const Phase* phase = book.find_phase("tune");
    REQUIRE(phase != nullptr);
    std::vector<std::string> names;
    for (const Rule* r : book.rules_of(*phase)) names.push_back(r->name);
    RunOptions options;
    options.limits.iterations = static_cast<std::size_t>(*phase->iterations);
    options.limits.nodes = static_cast<std::size_t>(*phase->nodes);
    Term nest = nest_of(statement_of(parse_term("(conv2d 1 1 64 64 32 32 3 3 1 1 1 1 1 1)")));
    auto g = grow(book, names, nest, options);
    double count = TermSpace(g->graph).count(g->root);
    std::printf("tune: %zu nodes, %zu classes, %.3g schedules, %.2f s, %.0f MB\n", g->graph.node_count(), g->graph.class_count(), count, g->report.seconds, static_cast<double>(g->report.peak_bytes) / 1e6);
    for (const IterationReport& it : g->report.iterations) std::printf("  %zu nodes %zu classes %.2f s (search %.2f apply %.2f rebuild %.2f)\n", it.nodes, it.classes, it.seconds, it.search_seconds, it.apply_seconds, it.rebuild_seconds);
    CHECK(count >= 1e9);
    CHECK(g->graph.node_count() < 300000);
    CHECK(g->report.peak_bytes < 500'000'000);
}
