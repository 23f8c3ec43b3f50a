#include <cstdlib>
#include <iostream>
#include <random>

#include <catch2/catch.hpp>

#include "base/sexpr.hpp"
#include "bench/math_rules.hpp"
#include "egraph/explain.hpp"
#include "egraph/proof_check.hpp"
#include "egraph/runner.hpp"

using namespace loopegg;

namespace {

const bool deep = std::getenv("LOOPEGG_DEEP") != nullptr;

// A term of a class, drawn by choosing nodes at random; the smallest one from `depth` down.
Term draw(const EGraph& graph, ClassId c, std::mt19937& random, int depth) {
    if (depth == 0) return graph.smallest_term(c);
    const auto nodes = graph.nodes(graph.find(c));
    const NodeView node = graph.node(nodes[random() % nodes.size()]);
    std::vector<Term> children;
    for (ClassId k : node.children) children.push_back(draw(graph, k, random, depth - 1));
    return Term(node.op, std::move(children));
}

// One change that makes a proof claim or do something else.
bool tamper(nlohmann::json& proof, std::mt19937& random) {
    auto& steps = proof["steps"];
    if (steps.empty()) return false;
    auto& step = steps[random() % steps.size()];
    switch (random() % 7) {
        case 0: steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(random() % steps.size())); return true;
        case 1: step["backwards"] = !step["backwards"].get<bool>(); return true;
        case 2: step["rule"] = "no-such-rule"; return true;
        case 3: step["at"].push_back(random() % 2); return true;
        case 4: proof["to"] = "(tampered " + proof["to"].get<std::string>() + ")"; return true;
        case 5: proof["from"] = "(tampered " + proof["from"].get<std::string>() + ")"; return true;
        default: {
            auto& with = step["with"];
            if (with.empty()) return false;
            auto it = with.begin();
            std::advance(it, random() % with.size());
            *it = "(tampered " + it->get<std::string>() + ")";
            return true;
        }
    }
}

}  // namespace

TEST_CASE("pairs of equal terms are proven, proofs check, tampered ones do not", "[unit]") {
    EGraph graph(EGraph::Options{.proofs = true});
    for (const Term& t : math_terms()) graph.add(t);
    Runner runner(graph, math_rules());
    RunOptions options;
    options.limits.iterations = deep ? 8 : 7;
    runner.run(options);
    const ProofRules rules{.rules = math_rules()};
    std::mt19937 random(7);
    const std::size_t wanted = deep ? 10'000 : 300, tampered_wanted = deep ? 1'000 : 100;
    std::size_t proven = 0, tampered = 0, steps = 0, before = 0, longest = 0;
    const auto classes = graph.classes();
    while (proven < wanted) {
        const ClassId c = classes[random() % classes.size()];
        const Term a = draw(graph, c, random, 2), b = draw(graph, c, random, 2);
        if (a == b) continue;
        const Proof raw = explain(graph, a, b);
        const Proof proof = minimise(raw, graph, 2000);
        REQUIRE(proof.steps.size() <= raw.steps.size());
        REQUIRE(!proof.steps.empty());
        nlohmann::json json = to_json(proof);
        const ProofVerdict verdict = check_proof(json, rules);
        INFO(to_string(proof));
        INFO(verdict.why);
        REQUIRE(verdict.valid);
        REQUIRE(check_proof(to_json(raw), rules).valid);
        ++proven, steps += proof.steps.size(), before += raw.steps.size();
        longest = std::max(longest, proof.steps.size());
        if (tampered < tampered_wanted && tamper(json, random)) {
            INFO(json.dump(1));
            REQUIRE_FALSE(check_proof(json, rules).valid);
            ++tampered;
        }
    }
    CHECK(tampered == tampered_wanted);
    std::cout << "proofs: " << proven << " pairs, mean " << double(steps) / double(proven) << " steps (" << double(before) / double(proven)
              << " before shortening), longest " << longest << "; " << tampered << " tampered\n";
}
