#include <catch2/catch.hpp>

#include <array>

#include "base/sexpr.hpp"
#include "bench/math_rules.hpp"
#include "compare.hpp"
#include "egraph/explain.hpp"
#include "egraph/proof_check.hpp"
#include "egraph/runner.hpp"
#include "egraph/serialize.hpp"

using namespace loopegg;

namespace {

ClassId add(EGraph& g, std::string_view text) { return g.add(parse_term(text)); }

std::string smallest(const EGraph& g, std::string_view text) { return to_string(g.smallest_term(*g.lookup(parse_term(text)))); }

// Folds sums of numbers, as a lattice fact with modify.
class Folding final : public LatticeAnalysis<std::optional<std::int64_t>> {
public:
    std::string_view name() const override { return "folding"; }
    std::optional<std::int64_t> fact_of(const EGraph& g, const NodeView& n) const override {
        if (n.children.empty()) return integer_of(n.op);
        if (n.op.text() != "+") return std::nullopt;
        const auto a = (*this)[g.find(n.children[0])], b = (*this)[g.find(n.children[1])];
        return a && b ? std::optional(*a + *b) : std::nullopt;
    }
    bool join_facts(std::optional<std::int64_t>& into, const std::optional<std::int64_t>& other) const override {
        if (into || !other) return false;
        into = other;
        return true;
    }
    std::optional<std::string> conflict_of(const std::optional<std::int64_t>& a, const std::optional<std::int64_t>& b) const override {
        if (a && b && *a != *b) return "their values differ";
        return std::nullopt;
    }
    void modify(EGraph& g, ClassId c) override {
        if (const auto value = (*this)[g.find(c)]) g.merge(c, g.add(Term(*value)), "folding");
    }
};

}  // namespace

TEST_CASE("equal nodes are one, and equal children make equal parents", "[unit]") {
    EGraph g;
    const ClassId fa = add(g, "(f a)"), fb = add(g, "(f b)"), gfa = add(g, "(g (f a) (f b) a)"), gfb = add(g, "(g (f b) (f a) b)");
    CHECK(add(g, "(f a)") == fa);
    CHECK(g.node_count() == 6);
    CHECK(g.class_count() == 6);
    CHECK(g.merge(*g.lookup(Term("a")), *g.lookup(Term("b"))));
    CHECK_FALSE(g.equal(fa, fb));
    g.rebuild();
    CHECK(g.equal(fa, fb));
    CHECK(g.equal(gfa, gfb));
    CHECK(g.node_count() == 4);
    CHECK(g.class_count() == 3);
    CHECK(g.parents(fa).size() == 1);
    CHECK(g.nodes(g.find(fa)).size() == 1);
    CHECK_FALSE(g.lookup(parse_term("(f c)")));
}

TEST_CASE("an analysis follows merges and may add what it found", "[unit]") {
    EGraph g(EGraph::Options{.proofs = true});
    auto folding = std::make_shared<Folding>();
    const ClassId early = add(g, "(+ 1 2)");
    g.attach(folding);
    const ClassId sum = add(g, "(+ (+ 1 2) (+ x 4))");
    g.rebuild();
    CHECK((*folding)[g.find(early)] == 3);
    CHECK(g.equal(early, *g.lookup(Term("3"))));
    CHECK_FALSE((*folding)[g.find(sum)]);
    g.merge(*g.lookup(Term("x")), add(g, "5"));
    g.rebuild();
    CHECK((*folding)[g.find(sum)] == 12);
    CHECK(smallest(g, "(+ (+ 1 2) (+ x 4))") == "12");
    const Proof proof = explain(g, parse_term("(+ 3 (+ x 4))"), Term("12"));
    CHECK(check_proof(to_json(proof), {.rules = {}, .allow_asserted = true}).valid);
    CHECK_FALSE(check_proof(to_json(proof), {.rules = {}}).valid);
}

TEST_CASE("rules that contradict each other are reported with the proof", "[errors]") {
    EGraph g(EGraph::Options{.proofs = true});
    g.attach(std::make_shared<NumberAnalysis>());
    add(g, "(twice 1)");
    Runner runner(g, {rewrite("twice-adds", "(twice ?x)", "(+ ?x ?x)"), rewrite("one-and-one", "(+ 1 1)", "2"), rewrite("twice-keeps", "(twice ?x)", "?x")});
    try {
        runner.run();
        FAIL("two numbers became one class");
    } catch (const InvariantBroken& e) {
        CHECK(e.rule == "one-and-one");
        CHECK(e.analysis == "numbers");
        CHECK(to_string(e.a) == "1");
        CHECK(to_string(e.b) == "2");
        CHECK(e.proof.find("twice-keeps") != std::string::npos);
        CHECK(e.proof.find("twice-adds") != std::string::npos);
        CHECK(std::string(e.what()).find("rule 'one-and-one' makes 1 and 2 equal") != std::string::npos);
    }
}

TEST_CASE("a rule that a judge has missed is the rule's fault, and named", "[errors]") {
    struct Judged final : LatticeAnalysis<std::optional<std::int64_t>> {
        NumberAnalysis numbers;
        std::string_view name() const override { return "judged numbers"; }
        bool conflict_is_our_fault() const override { return true; }
        std::optional<std::int64_t> fact_of(const EGraph& graph, const NodeView& node) const override { return numbers.fact_of(graph, node); }
        bool join_facts(std::optional<std::int64_t>& into, const std::optional<std::int64_t>& other) const override { return numbers.join_facts(into, other); }
        std::optional<std::string> conflict_of(const std::optional<std::int64_t>& a, const std::optional<std::int64_t>& b) const override {
            return numbers.conflict_of(a, b);
        }
    };
    const std::vector<std::array<const char*, 3>> wrong{{"merges", "(f 1)", "2"}, {"joins", "1", "2"}};
    for (const auto& [name, left, right] : wrong) {
        EGraph g;
        g.attach(std::make_shared<Judged>());
        add(g, "(f 1)");
        Runner runner(g, {rewrite("opens", "(f ?x)", "?x"), rewrite(name, left, right)});
        CHECK_THROWS_MATCHES(runner.run(), UserError, Catch::Predicate<UserError>([&](const UserError& e) {
                                 return std::string(e.what()).find("rule '" + std::string(name) + "'") != std::string::npos &&
                                        std::string(e.what()).find("its judge accepted it") != std::string::npos;
                             }));
    }
}

TEST_CASE("guards, choices and computed parts", "[unit]") {
    EGraph g(EGraph::Options{.proofs = true});
    add(g, "(at 12 done)");
    Rewrite split = rewrite("split", "(at ?n ?s)", "(at ?k (at ?rest ?s))");
    split.choices = {{Symbol("?k"),
                      "(divisors ?n)",
                      {Symbol("?n")},
                      [](const EGraph& graph, std::span<const ClassId> c) {
                          std::vector<Term> out;
                          const std::int64_t n = graph.integer(c[0]).value_or(1);
                          for (std::int64_t d = 2; d < n; ++d)
                              if (n % d == 0) out.emplace_back(d);
                          return out;
                      }},
                     {Symbol("?rest"), "(/ ?n ?k)", {Symbol("?n"), Symbol("?k")}, [](const EGraph& graph, std::span<const ClassId> c) {
                          return std::vector<Term>{Term(*graph.integer(c[0]) / *graph.integer(c[1]))};
                      }}};
    split.guards = {{"(even ?k)", {Symbol("?k")}, [](const EGraph& graph, std::span<const ClassId> c) {
                         const bool even = *graph.integer(c[0]) % 2 == 0;
                         return Verdict{even, even ? "even" : "odd", {{"k", *graph.integer(c[0])}}};
                     }}};
    Runner runner(g, {split});
    CHECK(runner.run().stop == StopReason::saturated);
    CHECK(g.lookup(parse_term("(at 4 (at 3 done))")));
    CHECK(g.lookup(parse_term("(at 2 (at 2 (at 3 done)))")));
    CHECK_FALSE(g.lookup(parse_term("(at 3 (at 4 done))")));
    const Proof proof = minimise(explain(g, parse_term("(at 12 done)"), parse_term("(at 2 (at 2 (at 3 done)))")), g);
    nlohmann::json json = to_json(proof);
    ProofRules rules{.rules = {split}};
    CHECK(check_proof(json, rules).valid);
    CHECK(json["steps"][0]["guards"][0]["why"] == "even");
    rules.choice = [](const Choice& c, const CheckedSubstitution& with, const Term& value) {
        return c.text != "(/ ?n ?k)" || *with.at("?n").integer() == *with.at("?k").integer() * *value.integer();
    };
    rules.guard = [](const Guard&, const CheckedSubstitution& with, const nlohmann::json&) { return *with.at("?k").integer() % 2 == 0; };
    CHECK(check_proof(json, rules).valid);
    json["steps"][0]["guards"][0]["allowed"] = false;
    CHECK_FALSE(check_proof(json, rules).valid);
    json["steps"][0].erase("guards");
    CHECK_FALSE(check_proof(json, rules).valid);
}

TEST_CASE("a rule over two patterns speaks of both, and the proof holds its premises", "[unit]") {
    EGraph g(EGraph::Options{.proofs = true});
    add(g, "(conv (conv x w1) w2)");
    add(g, "(width w1 8)");
    add(g, "(width w2 8)");
    Rewrite both;
    both.name = "narrow-both";
    both.left = {{Symbol("?c"), parse_term("(conv ?y ?b)")},
                 {Symbol("?y"), parse_term("(conv ?x ?a)")},
                 {Symbol("?wa"), parse_term("(width ?a ?n)")},
                 {Symbol("?wb"), parse_term("(width ?b ?n)")}};
    both.right = {{Symbol("?c"), parse_term("(pair ?x ?a ?b)")}};
    Runner runner(g, {both, rewrite("unfold", "(conv x w1)", "(start w1)")});
    runner.run();
    CHECK(g.equal(*g.lookup(parse_term("(pair x w1 w2)")), *g.lookup(parse_term("(conv (start w1) w2)"))));
    const Proof proof = explain(g, parse_term("(conv (start w1) w2)"), parse_term("(pair x w1 w2)"));
    const ProofRules rules{.rules = {both, rewrite("unfold", "(conv x w1)", "(start w1)")}};
    INFO(to_string(proof));
    CHECK(check_proof(to_json(proof), rules).valid);
    nlohmann::json json = to_json(proof);
    for (auto& s : json["steps"])
        if (s["rule"] == "narrow-both") s["with"]["?y"] = "z";
    CHECK_FALSE(check_proof(json, rules).valid);
}

TEST_CASE("a neural rule leads an edge to a class of its own", "[unit]") {
    EGraph g(EGraph::Options{.proofs = true});
    const ClassId dense = add(g, "(nest conv (at co done))");
    Rewrite group = rewrite("group", "(nest ?n (at ?a ?s))", "(nest ?n (at (diag ?g ?a) ?s))");
    group.relation = Relation::neural;
    group.choices = {{Symbol("?g"), "(2 4)", {}, [](const EGraph&, std::span<const ClassId>) { return std::vector<Term>{Term("2"), Term("4")}; }}};
    std::size_t batches = 0;
    group.guards = {{"(capacity)", {Symbol("?g"), result_variable}, {}, [&](const EGraph& graph, std::span<const std::vector<ClassId>> all) {
                         ++batches;
                         std::vector<Verdict> out;
                         for (const auto& c : all) {
                             REQUIRE(graph.lookup(parse_term("(nest conv (at (diag 2 co) done))")));
                             out.push_back({graph.integer(c[0]) == 2, "score", {{"score", 0.9}}});
                         }
                         return out;
                     }}};
    Runner runner(g, {group, rewrite("swap", "(nest conv ?s)", "(nest same ?s)")});
    RunOptions options;
    options.limits.iterations = 1;
    runner.run(options);
    REQUIRE(g.edges().size() == 1);
    CHECK(batches == 1);
    const Edge& e = g.edges()[0];
    CHECK(g.equal(e.from, dense));
    CHECK_FALSE(g.equal(e.from, e.to));
    CHECK(e.guards.at(0).verdict.evidence["score"] == 0.9);
    CHECK(g.lookup(parse_term("(nest conv (at (diag 2 co) done))")) == g.find(e.to));
    const nlohmann::json proof = to_json(explain_edge(g, e));
    CHECK(check_proof(proof, {.rules = {group}, .allow_neural = true}).valid);
    CHECK_FALSE(check_proof(proof, {.rules = {group}}).valid);
    runner.run(options);
    std::size_t from_dense = 0;
    for (const Edge& edge : g.edges()) from_dense += g.equal(edge.from, dense) && edge.substitution[0].first == Symbol("?n");
    CHECK(g.edges().size() > 1);  // variants of the variant; the first edge is there once
    CHECK(from_dense >= 1);
}

TEST_CASE("a state is kept and restored whole", "[unit]") {
    EGraph g(EGraph::Options{.proofs = true}), before;
    auto folding = std::make_shared<Folding>();
    g.attach(folding);
    for (EGraph* each : {&g, &before}) add(*each, "(* (- 3 x) y)"), each->rebuild();
    g.push();
    Runner(g, {rewrite("flip", "(* ?a ?b)", "(* ?b ?a)"), rewrite("minus", "(- ?a ?b)", "(+ ?a (neg ?b))")}).run();
    g.merge(*g.lookup(Term("x")), *g.lookup(Term("y")));
    g.rebuild();
    CHECK(difference(g, before) != "");
    g.pop();
    CHECK(difference(g, before) == "");
    CHECK(g.depth() == 0);
    CHECK((*folding)[*g.lookup(Term("3"))] == 3);
    Runner(g, {rewrite("flip", "(* ?a ?b)", "(* ?b ?a)")}).run();
    CHECK(g.equal(*g.lookup(parse_term("(* y (- 3 x))")), *g.lookup(parse_term("(* (- 3 x) y)"))));
}

TEST_CASE("limits hold inside an iteration, and why a run stopped is data", "[unit]") {
    const std::vector<Rewrite> endless{rewrite("commute", "(+ ?a ?b)", "(+ ?b ?a)"), rewrite("associate", "(+ ?a (+ ?b ?c))", "(+ (+ ?a ?b) ?c)"),
                                       rewrite("grow", "(+ ?a ?b)", "(+ (s ?a) (p ?b))")};
    EGraph g;
    add(g, "(+ a (+ b (+ c (+ d (+ e f)))))");
    RunOptions options;
    SECTION("nodes") {
        options.limits.nodes = 5000;
        const RunReport r = Runner(g, endless).run(options);
        CHECK(r.stop == StopReason::nodes);
        CHECK(g.node_count() <= 5000);
        CHECK(g.node_count() > 4900);
    }
    SECTION("bytes") {
        options.limits.bytes = 1'000'000;
        const RunReport r = Runner(g, endless).run(options);
        CHECK(r.stop == StopReason::bytes);
        CHECK(r.peak_bytes < 1'300'000);
    }
    SECTION("seconds") {
        options.limits.seconds = 0.05;
        const RunReport r = Runner(g, endless).run(options);
        CHECK(r.stop == StopReason::seconds);
    }
    SECTION("iterations") {
        options.limits.iterations = 3;
        const RunReport r = Runner(g, endless).run(options);
        CHECK(r.stop == StopReason::iterations);
        CHECK(r.iterations.size() == 3);
        CHECK(r.iterations[2].rules[1].rule == "associate");
        CHECK(r.iterations[2].rules[1].matches > 0);
    }
    SECTION("cancelled") {
        options.after_iteration = [](const IterationReport& it) { return it.nodes < 100; };
        CHECK(Runner(g, endless).run(options).stop == StopReason::cancelled);
    }
    g.rebuild();
    CHECK(g.clean());
}

TEST_CASE("a bare variable matches every class", "[unit]") {
    EGraph g(EGraph::Options{.proofs = true});
    add(g, "(f a)");
    RunOptions options;
    options.limits.iterations = 2;
    Runner(g, {rewrite("wrap", "?x", "(id ?x)")}).run(options);
    CHECK(g.lookup(parse_term("(f (id (id a)))")));
    const Proof p = explain(g, parse_term("(f a)"), parse_term("(id (f (id a)))"));
    CHECK(check_proof(to_json(p), {.rules = {rewrite("wrap", "?x", "(id ?x)")}}).valid);
}

TEST_CASE("a rule that binds too little is refused by name", "[errors]") {
    CHECK_THROWS_WITH(CompiledRewrite(rewrite("bad", "(f ?a)", "(g ?b)")), Catch::Contains("rule 'bad'") && Catch::Contains("?b"));
    Rewrite guarded = rewrite("bad-guard", "(f ?a)", "(g ?a)");
    guarded.guards = {{"(p ?c)", {Symbol("?c")}, [](const EGraph&, std::span<const ClassId>) { return Verdict{true, "", {}}; }}};
    CHECK_THROWS_WITH(CompiledRewrite(guarded), Catch::Contains("(p ?c)"));
}

TEST_CASE("the math set grows to the known sizes", "[unit]") {
    const SearchMode mode = GENERATE(SearchMode::incremental, SearchMode::plain, SearchMode::checked);
    EGraph graph;
    for (const Term& t : math_terms()) graph.add(t);
    Runner runner(graph, math_rules());
    RunOptions options;
    options.search = mode;
    options.limits.iterations = 10;
    const RunReport report = runner.run(options);
    REQUIRE(report.stop == StopReason::iterations);
    for (std::size_t i = 0; i < report.iterations.size(); ++i) {
        CHECK(report.iterations[i].nodes == math_counts[i].first);
        CHECK(report.iterations[i].classes == math_counts[i].second);
    }
}

TEST_CASE("an e-graph is written and read back", "[unit]") {
    EGraph graph;
    std::vector<ClassId> roots;
    for (const Term& t : math_terms()) roots.push_back(graph.add(t));
    RunOptions options;
    options.limits.iterations = 5;
    Runner(graph, math_rules()).run(options);
    const std::string text = write_egraph_json(graph, roots);
    const ReadEGraph back = read_egraph_json(make_source("math.json", text));
    CHECK(difference(graph, back.graph) == "");
    REQUIRE(back.roots.size() == roots.size());
    CHECK(back.graph.smallest_term(back.roots[0]) == graph.smallest_term(roots[0]));
    CHECK(write_egraph_json(graph, roots) == text);
    CHECK_THROWS_WITH(write_egraph_dot(graph), Catch::Contains("too large to draw"));
}

TEST_CASE("a small e-graph is drawn", "[unit]") {
    EGraph graph;
    graph.merge(graph.add(parse_term("(f a)")), graph.add(parse_term("a")));
    graph.rebuild();
    const std::string dot = write_egraph_dot(graph);
    CHECK(dot.find("digraph") == 0);
    CHECK(dot.find("cluster_") != std::string::npos);
}

TEST_CASE("an e-graph file that cannot be one is answered with the place", "[errors]") {
    auto read = [](const char* text) { return read_egraph_json(make_source("bad.json", text)); };
    CHECK_THROWS_WITH(read(R"({"nodes": {"a": {"op": "f", "children": ["b"], "eclass": "1"}}, "root_eclasses": ["1"]})"),
                      Catch::Contains("'b' is no node") && Catch::Contains("bad.json:1:"));
    CHECK_THROWS_WITH(read(R"({"nodes": {"a": {"op": "f", "children": ["a"], "eclass": "1"}}, "root_eclasses": ["1"]})"), Catch::Contains("no finite term"));
    CHECK_THROWS_WITH(read(R"({"nodes": {"a": {"op": "x", "children": [], "eclass": "1"}}, "root_eclasses": ["2"]})"), Catch::Contains("'2' is no class"));
    CHECK_THROWS_AS(read("[1, 2]"), UserError);
}
