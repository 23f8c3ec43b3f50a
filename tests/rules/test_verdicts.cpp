// What the judge says of a rule holds where the rule is used: tags for sums and roundings, whatever its author wrote, and rules that are not proved.
#include <catch2/catch.hpp>

#include <algorithm>

#include "base/sexpr.hpp"
#include "case_table.hpp"
#include "egraph/runner.hpp"
#include "nest/term/class_terms.hpp"
#include "nest/term/facts.hpp"
#include "rules/load.hpp"
#include "rules/nest_judge.hpp"

using namespace loopegg;

namespace {

RuleBook book_of(const std::string& rule) { return load_rules(make_source("tags.rules", "(language nest)\n" + rule)); }

bool asks(const Rule& rule, const std::string& guard) {
    return std::any_of(rule.guards.begin(), rule.guards.end(), [&](const GuardCall& g) { return g.text == guard; });
}

// How many schedules the only rule of a book adds to those of a nest.
std::size_t schedules_added(const RuleBook& book, const std::string& nest, const NestAnalysis::Options& options) {
    EGraph graph;
    const auto facts = std::make_shared<NestAnalysis>(options);
    graph.attach(facts);
    const ClassId root = graph.add(parse_term(nest));
    graph.rebuild();
    RunOptions once;
    once.limits.iterations = 1;
    Runner(graph, bind_rules(book.rules(), {facts, {}})).run(once);
    return ClassTerms(graph).all(graph.find(root), 40).size() - 1;
}

const std::string swapped_sums = "(rule swap-sums (nest ?n (at ?a (at ?b ?s))) => (nest ?n (at ?b (at ?a ?s))) :when (reduction ?a) (reduction ?b))";
const std::string sums_in_parts = "(rule sum-in-parts (nest ?n (at ?a ?s)) => (nest ?n (partial vec ?a ?s)) :when (reduction ?a))";
const std::string matrix_product = "(nest (conv2d 1 1 16 16 4 4 3 3 1 1 1 1 1 1) (at ci:16 (at kh:3 (at kw:3 (at co:16 (at oh:4 (at ow:4 done)))))))";

}  // namespace

TEST_CASE("a rule that reorders sums is tagged so, and does not apply under strict-fp", "[rules]") {
    for (const std::string& text : {swapped_sums, sums_in_parts}) {
        INFO(text);
        const RuleBook book = book_of(text);
        const Rule& rule = *book.rules().front();
        REQUIRE(rule.verdict.has_value());
        CHECK(rule.verdict->accepted());
        CHECK(rule.verdict->reorders_sums);
        CHECK(rule.verdict->roundings.empty());
        CHECK(asks(rule, "(allow-reassociation)"));
        CHECK(schedules_added(book, matrix_product, {.strict_fp = false, .proven = false, .gpu = {}, .cpu = {.cores = 2}}) > 0);
        CHECK(schedules_added(book, matrix_product, {.strict_fp = true, .proven = false, .gpu = {}, .cpu = {.cores = 2}}) == 0);
    }
}

TEST_CASE("a rule that keeps the order of sums has no tag, and applies under strict-fp", "[rules]") {
    const RuleBook book = book_of("(rule swap-outputs (nest ?n (at ?a (at ?b ?s))) => (nest ?n (at ?b (at ?a ?s))) :when (permutable ?a ?b))");
    const Rule& rule = *book.rules().front();
    CHECK(rule.verdict->proof == RuleVerdict::Proof::all_sizes);
    CHECK_FALSE(rule.verdict->reorders_sums);
    CHECK_FALSE(asks(rule, "(allow-reassociation)"));
    const std::string outputs_outside = "(nest (conv2d 1 1 16 16 4 4 3 3 1 1 1 1 1 1) (at co:16 (at oh:4 (at ow:4 (at ci:16 (at kh:3 (at kw:3 done)))))))";
    CHECK(schedules_added(book, outputs_outside, {.strict_fp = true, .proven = false, .gpu = {}, .cpu = {.cores = 2}}) > 0);
    CHECK(schedules_added(book, matrix_product, {.strict_fp = true, .proven = false, .gpu = {}, .cpu = {.cores = 2}}) == 0);
}

// The shipped rule for tensor cores without its guard.
TEST_CASE("a rule that rounds operands is tagged so, and asks whether they may be rounded", "[rules]") {
    const RuleBook shipped = load_rules(std::filesystem::path(LOOPEGG_RULES) / "tune-gpu.rules", {.judge = false});
    const Rule* rule = shipped.find_rule("tensor-products");
    REQUIRE(rule != nullptr);
    const std::string guard = " :when (may-round ?u)";
    std::string text = rule->text;
    const std::size_t at = text.find(guard);
    REQUIRE(at != text.npos);
    text.erase(at, guard.size());
    const RuleBook book = book_of(text);
    CHECK(book.rules().front()->verdict->roundings == std::set<std::string>{"?u"});
    CHECK(asks(*book.rules().front(), "(may-round ?u)"));
    const std::string large = "(nest (conv2d 1 1 64 64 32 32 3 3 1 1 1 1 1 1) (at co:64 (at ci:64 (at oh:32 (at ow:32 (at kh:3 (at kw:3 done)))))))";
    CHECK(schedules_added(book, large, {.strict_fp = false, .proven = false, .gpu = {.units = units_for_trials(true)}, .cpu = {}}) > 0);
    CHECK(schedules_added(book, large, {.strict_fp = false, .proven = false, .gpu = {}, .cpu = {}}) == 0);
}

// Where the rule is wrong, nests are too large to be tried, so that it is not refuted.
TEST_CASE("a rule that is not proved is refused, and admitted on request it is named where it breaks an invariant", "[rules]") {
    const std::string text =
        "(language nest)\n"
        "(rule first-millions (nest ?n (at ?a ?s)) => (nest ?n (at (span ?a 0 (min (extent ?a) 10000000)) ?s)) :when (unsplit ?a))";
    const Loaded refused = check_rules(make_source("unproved.rules", text));
    REQUIRE(refused.mistakes.size() == 1);
    CHECK_THAT(describe(refused.mistakes[0].what), Catch::Contains("unproved.rules:2:1") && Catch::Contains("not proved") && Catch::Contains("--unproved"));

    const RuleBook book = load_rules(make_source("unproved.rules", text), {.unproved = true});
    CHECK(book.rules().front()->verdict->proof == RuleVerdict::Proof::unproved);
    CHECK(unproved_rules_in_use() == std::vector<std::string>{"first-millions"});
    EGraph graph;
    const auto facts = book.language->make_facts();
    graph.attach(facts);
    graph.add(parse_term("(nest (recurrence 20000000 4) (at t:20000000 (at y:4 done)))"));
    graph.rebuild();
    Runner runner(graph, bind_rules(book.rules(), {facts, {}}));
    try {
        runner.run();
        FAIL("the right side leaves instances out");
    } catch (const InvariantBroken& broken) {
        CHECK(broken.rule == "first-millions");
    }
}

// experiments/faults.md counts them.
TEST_CASE("rules of XLA's simplifier that values can express get these verdicts", "[rules]") {
    CaseTable table(std::filesystem::path(LOOPEGG_RULES) / "../tests/rules/xla.txt");
    for (TableCase& c : table.cases()) {
        const Loaded loaded = check_rules(make_source(c.name, "(language nest)\n" + c.input), {.judge = false});
        REQUIRE(loaded.mistakes.empty());
        table.check(c, in_words(judge_nest_rule(*loaded.book.rules().front())) + "\n");
    }
    table.finish();
}
