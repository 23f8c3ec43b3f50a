// The rule language: what it reads and refuses, and the judge of rules over networks.
#include <catch2/catch.hpp>

#include "base/places.hpp"
#include "base/sexpr.hpp"
#include "egraph/runner.hpp"
#include "rules/judge/net_proof.hpp"
#include "rules/load.hpp"
#include "rules/net_judge.hpp"
#include "unit/rules/tiles.hpp"

using namespace loopegg;

namespace {

RuleBook book_of(const std::string& text) { return load_rules(make_source("test.rules", text)); }

// Runs every rule of the book over the terms.
struct Run {
    EGraph graph;
    std::shared_ptr<Analysis> facts;
    RunReport report;
    Run(const RuleBook& book, const std::vector<std::string>& terms, std::size_t iterations = 4, Binding binding = {}) {
        facts = binding.facts = book.language->make_facts ? book.language->make_facts() : nullptr;
        if (facts) graph.attach(facts);
        for (const std::string& t : terms) graph.add(parse_term(t));
        graph.rebuild();
        RunOptions options;
        options.limits.iterations = iterations;
        report = Runner(graph, bind_rules(book.rules(), binding)).run(options);
    }
    bool has(const std::string& term) const { return graph.lookup(parse_term(term)).has_value(); }
    bool equal(const std::string& a, const std::string& b) const {
        const auto x = graph.lookup(parse_term(a)), y = graph.lookup(parse_term(b));
        return x && y && graph.equal(*x, *y);
    }
};

}  // namespace

TEST_CASE("rules, sets, tags and phases are read", "[unit]") {
    const RuleBook book = book_of(R"(
        ; a comment
        (rule alone (f ?a) => (g ?a))
        (ruleset structure :tags cpu gpu
          (rule add-commutes (+ ?a ?b) => (+ ?b ?a))
          (rule neutral      (+ ?a 0) <=> ?a))
        (phase grow :rules structure main :iterations 6 :nodes 2000 :seconds 1.5 :scheduler backoff :when (expected-loss <= 0.5) (fisher >= 0.9)))");
    CHECK(book.language->name == "free");
    CHECK(book.rule_count() == 3);
    CHECK(book.find_set("structure")->tags == std::vector<std::string>{"cpu", "gpu"});
    CHECK(book.find_rule("neutral")->arrow == Arrow::both);
    const Phase& phase = *book.find_phase("grow");
    CHECK(phase.iterations == 6);
    CHECK(phase.nodes == 2000);
    CHECK(phase.seconds == 1.5);
    CHECK(phase.scheduler == "backoff");
    CHECK(phase.when == std::vector<MeasureCondition>{{"expected-loss", false, 0.5}, {"fisher", true, 0.9}});
    CHECK(book.rules_of(phase).size() == 3);
    CHECK(book.find_rule("alone")->text == "(rule alone (f ?a) => (g ?a))");
}

TEST_CASE("the guard allow-reassociation is also read by its old name", "[unit]") {
    const auto guard_named = [](const std::string& name) {
        const RuleBook book = load_rules(make_source("test.rules", "(language nest) (rule swap (at ?a (at ?b ?s)) => (at ?b (at ?a ?s)) :when (" + name + "))"),
                                         {.judge = false});
        return book.find_rule("swap")->guards.at(0).guard->name;
    };
    CHECK(guard_named("sums-may-differ") == "allow-reassociation");
    CHECK(guard_named("allow-reassociation") == "allow-reassociation");
}

TEST_CASE("a rule of the free language runs, both ways where it says so", "[unit]") {
    const Run run(book_of("(rule double (+ ?a ?a) <=> (* 2 ?a))"), {"(+ x x)", "(* 2 y)"});
    CHECK(run.equal("(+ x x)", "(* 2 x)"));
    CHECK(run.equal("(* 2 y)", "(+ y y)"));
}

TEST_CASE("choices, guards and computed parts", "[unit]") {
    const Run run(book_of(R"(
        (rule split  (loop ?n) => (outer (eval (/ ?n ?k)) ?k) :for ?k (2 3 4) :when (divides ?k ?n) (< ?k ?n))
        (rule fold   (+ ?a ?b) => (eval (+ ?a ?b)) :when (number ?a) (number ?b))
        (rule halve  (half ?n) => (eval (/ ?n 2)))
        (rule pick   (any ?x)  => (one ?w ?x) :for ?w (red green))
        (rule powers (grow ?n) => (by ?p) :for ?p (powers 2 ?n)))"),
                  {"(loop 12)", "(+ 2 (+ 3 4))", "(half 7)", "(half 8)", "(any z)", "(grow 9)"});
    CHECK(run.equal("(loop 12)", "(outer 6 2)"));
    CHECK(run.equal("(loop 12)", "(outer 3 4)"));
    CHECK(run.equal("(+ 2 (+ 3 4))", "9"));
    CHECK(run.equal("(half 8)", "4"));
    CHECK(!run.has("3.5"));
    CHECK(run.equal("(any z)", "(one red z)"));
    CHECK(run.equal("(any z)", "(one green z)"));
    CHECK(run.equal("(grow 9)", "(by 8)"));
    CHECK(!run.has("(by 16)"));
}

TEST_CASE("remainders have the sign of the divisor, however large it is", "[unit]") {
    const std::string huge = "9223372036854775807";
    const Run run(book_of("(rule rest (rest ?a ?b) => (eval (% ?a ?b)))"), {"(rest 7 3)", "(rest -7 3)", "(rest 7 -3)", "(rest -6 3)", "(rest 5 " + huge + ")",
                                                                            "(rest -5 " + huge + ")", "(rest 5 -" + huge + ")", "(rest 4 0)"});
    CHECK(run.equal("(rest 7 3)", "1"));
    CHECK(run.equal("(rest -7 3)", "2"));
    CHECK(run.equal("(rest 7 -3)", "-2"));
    CHECK(run.equal("(rest -6 3)", "0"));
    CHECK(run.equal("(rest 5 " + huge + ")", "5"));
    CHECK(run.equal("(rest -5 " + huge + ")", "9223372036854775802"));
    CHECK(run.equal("(rest 5 -" + huge + ")", "-9223372036854775802"));
    CHECK(!run.equal("(rest 4 0)", "0"));
}

TEST_CASE("a rule of several patterns joins them on their variables", "[unit]") {
    const Run run(book_of("(rule fuse (= ?x (produce ?t)) (= ?y (consume ?x)) => (= ?y (fused ?t)))"), {"(consume (produce t))", "(consume u)"});
    CHECK(run.equal("(consume (produce t))", "(fused t)"));
    CHECK(!run.has("(fused u)"));
}

TEST_CASE("a language checks operators, kinds and leaves, and its facts answer its guards", "[unit]") {
    const Run run(load_rules(make_source("t.rules", R"(
        (rule split-loop (at ?a ?s) => (at (quo ?a ?k) (at (rem ?a ?k) ?s)) :for ?k (divisors ?a))
        (rule shrink     (at ?a ?s) ~> (at (span ?a 0 (/ (extent ?a) 2)) ?s) :when (capacity)))"),
                             {.language = &tiles_language()}),
                  {"(at co:8 done)"}, 2);
    CHECK(run.equal("(at co:8 done)", "(at (quo co:8 2) (at (rem co:8 2) done))"));
    CHECK(run.has("(at (span co:8 0 4) done)"));
    CHECK(!run.equal("(at co:8 done)", "(at (span co:8 0 4) done)"));
    CHECK(run.graph.edges().size() >= 1);
    CHECK(run.graph.edges()[0].guards.at(0).verdict.why == "no capacity oracle was queried");
}

TEST_CASE("a rule names its measures, and each is asked by itself", "[unit]") {
    Binding binding;
    std::vector<std::optional<MeasureCondition>> asked;
    binding.capacity = [&](const EGraph&, std::span<const CapacityProposal> all) {
        for (const CapacityProposal& p : all) asked.push_back(p.measure);
        return std::vector<Verdict>(all.size(), Verdict{true, "", {}});
    };
    const RuleBook book = load_rules(make_source("t.rules", R"(
        (rule shrink (at ?a ?s) ~> (at (span ?a 0 2) ?s) :when (fisher >= 0.90) (capacity) (params <= 0.5) (fisher <= 1.1)))"),
                                     {.language = &tiles_language()});
    const Run run(book, {"(at co:8 done)"}, 1, binding);
    const MeasureCondition least{"fisher", true, 0.9}, most{"fisher", false, 1.1}, params{"params", false, 0.5}, loss{"expected-loss", false, 1};
    CHECK(asked == std::vector<std::optional<MeasureCondition>>{least, std::nullopt, params, most});
    CHECK(run.graph.edges()[0].guards.at(0).guard == "(fisher >= 0.9)");
    CHECK(conditions_of_step(*book.find_rule("shrink"), std::vector{params, loss}) == std::vector{least, params, loss, most});
    CHECK(asks_measure("(fisher >= 0.9)"));
    CHECK(asks_measure("(capacity)"));
    CHECK(!asks_measure("(divides 2 4)"));
}

TEST_CASE("conditions on measures read back as they are written", "[unit]") {
    for (const MeasureKind& kind : measure_kinds())
        for (double threshold : {kind.most, kind.most / 3, kind.most / 1024}) {
            const MeasureCondition condition{std::string(kind.name), !kind.is_loss, threshold};
            CHECK(measure_conditions(to_string(condition), "test") == std::vector{condition});
        }
}

TEST_CASE("the capacity guard asks in batches and a refusal leaves no edge", "[unit]") {
    Binding binding;
    std::vector<std::size_t> batches;
    binding.capacity = [&](const EGraph&, std::span<const CapacityProposal> all) {
        batches.push_back(all.size());
        std::vector<Verdict> answers;
        for (std::size_t i = 0; i < all.size(); ++i) answers.push_back({i % 2 == 0, "by turns", {}});
        return answers;
    };
    const Run run(load_rules(make_source("t.rules", "(rule shrink (at ?a ?s) ~> (at (span ?a 0 ?k) ?s) :for ?k (2 4) :when (capacity))"),
                             {.language = &tiles_language()}),
                  {"(at co:8 done)", "(at ci:8 done)"}, 1, binding);
    CHECK(batches == std::vector<std::size_t>{4});
    CHECK(run.graph.edges().size() == 2);
}

TEST_CASE("rules that make two numbers equal are refused by name", "[errors]") {
    try {
        const Run run(book_of("(rule wrong (f ?a) => 2) (rule worse (f ?a) => 3)"), {"(f x)"});
        FAIL("1 = 2");
    } catch (const UserError& e) {
        const std::string text = e.what();
        CHECK(text.find("worse") != std::string::npos);
    }
}

TEST_CASE("the rules of the math microbenchmark are shipped in the language", "[rules]") {
    const RuleBook book = load_rules(std::filesystem::path(LOOPEGG_SOURCE) / "rules/math.rules");
    CHECK(book.rule_count() == 24);
    Run run(book, {"(d x (+ 1 (* 2 x)))", "(i (+ x (cos x)) x)"}, 5);
    CHECK(run.equal("(i (+ x (cos x)) x)", "(+ (i x x) (sin x))"));
}

namespace {

Loaded loaded_rule(const std::string& rule) {
    Loaded loaded = check_rules(make_source("test.rules", "(language nest)\n" + rule), {.judge = false});
    INFO((loaded.mistakes.empty() ? "" : loaded.mistakes[0].what.message));
    REQUIRE(loaded.mistakes.empty());
    return loaded;
}

// What small networks say against the only rule of a file; empty where they say nothing.
std::string against(const std::string& rule) {
    const Loaded loaded = loaded_rule(rule);
    const auto refutation = judge_net_rule(*loaded.book.rules().front());
    return refutation ? refutation->message : "";
}

// Why the rule is not proved; empty where it is.
std::string unproved(const std::string& rule) {
    const Loaded loaded = loaded_rule(rule);
    return prove_net_rule(*loaded.book.rules().front()).why;
}

}  // namespace

TEST_CASE("the shipped rules over networks are sound", "[rules]") {
    const Loaded loaded = check_rules(shipped("rules/networks.rules"), {.judge = false});
    REQUIRE(loaded.mistakes.empty());
    int judged = 0;
    for (const Rule* rule : loaded.book.rules()) {
        INFO(rule->name);
        const auto refutation = judge_net_rule(*rule);
        if (refutation) FAIL(refutation->message << ": " << refutation->instance);
        CHECK(prove_net_rule(*rule).why == "");
        ++judged;
    }
    CHECK(judged == 18);
}

TEST_CASE("exact rules over networks that move widths wrongly are refused", "[rules]") {
    CHECK(against("(rule r (write ?w (row ?x ?y)) => (row (write ?w ?x) ?y) :when (fresh ?y))") != "");
    CHECK(against("(rule r (write ?w (row ?x ?y)) => (row ?x ?y))") != "");
    CHECK(against("(rule r (lack ?m (row ?x ?y)) => (row (lack ?m ?x) (lack ?m ?y)))") != "");
    CHECK(against("(rule r (lack ?m (row ?x ?y)) => (row (lack ?m ?x) ?y))") != "");
    CHECK(against("(rule r (lack ?m (layer ?l ?n)) => (layer ?l (with-fewer-inputs ?n (+ ?m 1))))") != "");
    CHECK(against("(rule r (write ?w (layer ?l ?n)) => (layer ?l (with-outputs ?n (- ?w 1))))") != "");
    CHECK(against("(rule r (within ?w (row ?x ?y)) => (row (within ?w ?x) ?y))") != "");
    CHECK(against("(rule r (join ?j ?x ?f) => (join ?j ?f ?x))") != "");
    CHECK(against("(rule r (row ?x (each ?f ?n)) => ?x)") != "");
    CHECK(against("(rule r (row (stream ?x ?s) ?y) => (row ?x ?y))") != "");
}

TEST_CASE("neural rules over networks leave something out, and leave a network", "[rules]") {
    CHECK(against("(rule r (join (add ?j) ?x ?f) ~> ?f :when (computes ?f) (capacity))") == "leaves nothing out: a neural rule must restrict");
    CHECK(against("(rule r (row ?x ?y) ~> (row (write ?w ?x) ?y) :for ?w (shares 1 8 ?x) :when (capacity))").find("no network") != std::string::npos);
    CHECK(against("(rule r (row ?x ?y) ~> ?x :when (computes ?y) (capacity))") != "");
    CHECK(against("(rule r (join (add ?j) ?x ?f) ~> (join (add ?j) ?f ?f) :when (capacity))") != "");
    // Thirds of a width, and one layer in place of two.
    CHECK(against("(rule r (row ?x ?y) ~> (row (write (/ (channels ?x) 2) ?x) (read (/ (channels ?x) 2) ?y)) :when (narrowable ?x) (whole ?x) (computes ?y) "
                  "(separate ?y) (capacity))") == "");
    CHECK(against("(rule r (row ?x (row ?y ?z)) ~> (row ?x ?z) :when (computes ?y) (= (channels ?x) (channels ?y)) (capacity))") == "");
}

TEST_CASE("exact rules over networks are proved for all widths", "[rules]") {
    CHECK(unproved("(rule r (row (row ?x ?y) ?z) => (row ?x (row ?y ?z)))") == "");
    CHECK(unproved("(rule r (row ?x (row ?y ?z)) <=> (row (row ?x ?y) ?z))") == "");
    CHECK(unproved("(rule r (write ?w (write ?w ?x)) => (write ?w ?x))") == "");
    CHECK(unproved("(rule r (read ?w (read ?w ?x)) => (lack (- (channels-in ?x) ?w) ?x))") == "");
    CHECK(unproved("(rule r (write ?w (row ?x ?y)) => (row (write ?w ?x) (lack (- (channels ?x) ?w) ?y)) :when (channelwise ?y) (= (absent 1 ?y) 1))") == "");
}

// Small networks have at most 16 channels, and none of their sites is kept.
TEST_CASE("a rule over networks that is right for small widths alone is not proved", "[rules]") {
    for (const char* w : {"(min ?w 48)", "(- ?w (floor-div ?w 100))", "(% ?w 97)", "(max ?w (floor-div ?w 40))"}) {
        INFO(w);
        CHECK(against("(rule r (write ?w (layer ?l ?n)) => (layer ?l (with-outputs ?n " + std::string(w) + ")) :when (changeable ?l))") == "");
        CHECK(unproved("(rule r (write ?w (layer ?l ?n)) => (layer ?l (with-outputs ?n " + std::string(w) + ")) :when (changeable ?l))") != "");
    }
    CHECK(unproved("(rule r (join (add ?j) ?x ?f) => ?x :when (= (channels ?x) 48))") != "");
    CHECK(unproved("(rule r (lack ?m (row ?x ?y)) => (row (lack ?m ?x) (lack ?m ?y)))").find("does not read") != std::string::npos);
    CHECK(unproved("(rule r (lack ?m (row ?x ?y)) => (row (lack ?m ?x) (lack ?m ?y)) :when (channelwise ?x) (= (absent 1 ?x) 1))") == "");
    CHECK(unproved("(rule r (write ?w (join (add ?j) ?x ?y)) => (join (add ?j) (write ?w ?x) ?y))") != "");
    CHECK(unproved("(rule r (write ?w (row ?x ?y)) => (row ?x (write ?w ?y)))") != "");
    CHECK(unproved("(rule r (row (stream ?x ?s) ?y) ~> (row (stream ?x (write 4 ?x)) ?y) :when (capacity))") != "");
}

TEST_CASE("a rule that changes a site asks whether it may", "[rules]") {
    CHECK(against("(rule r (write ?w (layer ?l ?n)) => (layer ?l (with-outputs ?n ?w)))") == "");
    CHECK_THAT(unproved("(rule r (write ?w (layer ?l ?n)) => (layer ?l (with-outputs ?n ?w)))"), Catch::Contains("(changeable ?l)"));
    CHECK_THAT(unproved("(rule r (lack ?m (layer ?l ?n)) => (layer ?l (with-fewer-inputs ?n ?m)))"), Catch::Contains("(changeable ?l)"));
    CHECK(unproved("(rule r (join (add ?j) ?x ?f) ~> (join (add ?j) ?x (none ?f)) :when (computes ?f) (capacity))") != "");
    CHECK(unproved("(rule r (join (add ?j) ?x ?f) ~> (join (add ?j) ?x (none ?f)) :when (computes ?f) (free ?f) (capacity))") == "");
}
