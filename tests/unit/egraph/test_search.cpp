#include <cstdlib>
#include <random>

#include <catch2/catch.hpp>

#include "bench/math_rules.hpp"
#include "compare.hpp"
#include "egraph/explain.hpp"
#include "egraph/proof_check.hpp"
#include "egraph/runner.hpp"

using namespace loopegg;

namespace {

const bool deep = std::getenv("LOOPEGG_DEEP") != nullptr;

// Random rules and terms over a few operators of arity 0 to 3.
struct Random {
    std::mt19937 engine;
    std::size_t below(std::size_t n) { return engine() % n; }

    Term term(int depth, const std::vector<Symbol>& variables) {
        if (depth == 0 || below(variables.empty() ? 8 : 4) == 0) {
            if (!variables.empty() && below(8) != 0) return Term(variables[below(variables.size())]);
            return Term(std::vector<std::string_view>{"a", "b", "0"}[below(3)]);
        }
        switch (below(8)) {
            case 0: return Term("g", {term(depth - 1, variables)});
            case 1: return Term("h", {term(depth - 1, variables), term(depth - 1, variables), term(depth - 1, variables)});
            case 2: return Term("k", {term(depth - 1, variables), term(depth - 1, variables)});
            default: return Term("f", {term(depth - 1, variables), term(depth - 1, variables)});
        }
    }

    Rewrite rule(std::size_t number) {
        const std::vector<Symbol> variables{Symbol("?x"), Symbol("?y"), Symbol("?z")};
        for (;;) {
            Rewrite r;
            r.name = "rule-" + std::to_string(number);
            const Term left = term(1 + static_cast<int>(below(5) * below(2)) / 2, variables);
            if (left.size() == 0) continue;
            std::vector<Symbol> bound = variables_of(left);
            r.left = {{Symbol{}, left}};
            if (below(4) == 0) {  // a second pattern, which may speak of the first one's root
                r.left[0].root = Symbol("?r");
                std::vector<Symbol> both = bound;
                both.push_back(Symbol("?r"));
                const Term second = term(1 + static_cast<int>(below(2)), both);
                if (second.size() == 0) continue;
                r.left.push_back({Symbol("?s"), second});
                for (Symbol v : variables_of(second))
                    if (std::find(bound.begin(), bound.end(), v) == bound.end()) bound.push_back(v);
            }
            r.right = {{r.left[0].root, term(static_cast<int>(below(3)), bound)}};
            if (below(4) == 0) {  // a guard that looks into a class, and changes its mind when the class grows
                const Symbol seen = bound.empty() ? Symbol{} : bound[below(bound.size())];
                if (!seen.empty())
                    r.guards.push_back({"(grown " + seen.text() + ")", {seen}, [](const EGraph& g, std::span<const ClassId> c) {
                                            return Verdict{g.nodes(g.find(c[0])).size() >= 2, "", {}};
                                        }});
            }
            return r;
        }
    }
};

RunReport run(EGraph& graph, const std::vector<Term>& terms, const std::vector<Rewrite>& rules, SearchMode mode, Scheduler scheduler) {
    for (const Term& t : terms) graph.add(t);
    RunOptions options;
    options.search = mode;
    options.scheduler = scheduler;
    options.match_limit = 12;
    options.ban_length = 2;
    options.limits.iterations = scheduler == Scheduler::backoff ? 14 : 5;  // rules rest, and go on with the search that sent them to rest
    options.limits.nodes = 3000;
    return Runner(graph, rules).run(options);
}

}  // namespace

TEST_CASE("incremental and plain search give the same classes", "[unit]") {
    const std::size_t cases = deep ? 2500 : 150;
    std::size_t grew = 0, same = 0, proofs = 0;
    for (std::size_t seed = 0; seed < cases; ++seed) {
        Random random{std::mt19937(static_cast<unsigned>(seed))};
        std::vector<Rewrite> rules;
        for (std::size_t i = 0, n = 3 + random.below(6); i < n; ++i) rules.push_back(random.rule(i));
        if (random.below(2)) rules.push_back(rewrite("f-associates", "(f ?x (f ?y ?z))", "(f (f ?x ?y) ?z)"));
        if (random.below(2)) rules.push_back(rewrite("f-commutes", "(f ?x ?y)", "(f ?y ?x)"));
        std::vector<Term> terms;
        for (int i = 0; i < 3; ++i) terms.push_back(random.term(4, {}));
        const Scheduler scheduler = random.below(4) == 0 ? Scheduler::backoff : Scheduler::simple;
        INFO("seed " << seed);
        EGraph incremental(EGraph::Options{.proofs = true}), plain, checked;
        const RunReport one = run(incremental, terms, rules, SearchMode::incremental, scheduler);
        const RunReport two = run(plain, terms, rules, SearchMode::plain, scheduler);
        run(checked, terms, rules, SearchMode::checked, scheduler);
        REQUIRE(difference(incremental, checked) == "");
        // With backoff, when a rule rests depends on the order of merges; with a full e-graph, what came first does.
        if (scheduler == Scheduler::simple) {
            // Either may meet the limit in the middle of an iteration: they apply in different orders, and nodes that turn out equal count until then.
            const bool full = one.stop == StopReason::nodes || two.stop == StopReason::nodes;
            const std::size_t whole = std::min(one.iterations.size(), two.iterations.size()) - full;
            for (std::size_t i = 0; i < whole; ++i) REQUIRE(one.iterations[i].nodes == two.iterations[i].nodes);
            if (!full) REQUIRE(difference(incremental, plain) == "");
            same += !full;
        }
        grew += one.iterations.size() > 2;
        // What random rules made equal is proven too, guards and second patterns included.
        const ProofRules judged{.rules = rules};
        for (std::size_t i = 0; i < 3; ++i) {
            const ClassId c = incremental.classes()[random.below(incremental.class_count())];
            const auto nodes = incremental.nodes(c);
            const Term a = founding_term(incremental, nodes[random.below(nodes.size())]), b = founding_term(incremental, nodes[random.below(nodes.size())]);
            if (a == b) continue;
            const Proof proof = minimise(explain(incremental, a, b), incremental, 1000);
            const ProofVerdict verdict = check_proof(to_json(proof), judged);
            INFO(to_string(proof) << verdict.why);
            REQUIRE(verdict.valid);
            ++proofs;
        }
    }
    CHECK(grew > cases / 2);
    CHECK(same > cases / 3);
    CHECK(proofs > cases / 2);
}

TEST_CASE("with backoff, incremental search finds what plain search finds fresh on the math set", "[unit]") {
    EGraph one, two;
    for (const Term& t : math_terms()) one.add(t), two.add(t);
    RunOptions options;
    options.scheduler = Scheduler::backoff;
    options.limits.iterations = deep ? 20 : 14;
    Runner(one, math_rules()).run(options);
    options.search = SearchMode::checked;
    Runner(two, math_rules()).run(options);
    CHECK(difference(one, two) == "");
}

TEST_CASE("a run gives the same bytes every time", "[unit]") {
    auto numbers = [] {
        EGraph graph;
        for (const Term& t : math_terms()) graph.add(t);
        RunOptions options;
        options.limits.iterations = 7;
        Runner(graph, math_rules()).run(options);
        std::vector<std::uint32_t> out;
        for (ClassId c : graph.classes())
            for (NodeId n : graph.nodes(c)) {
                out.push_back(c), out.push_back(n);
                const auto children = graph.node(n).children;
                out.insert(out.end(), children.begin(), children.end());
            }
        return out;
    };
    CHECK(numbers() == numbers());
}
