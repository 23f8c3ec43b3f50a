// How far the search for cheap terms is from the best of many samples, on classes that hold too many terms to walk: schedules of some nests under the estimate.
//   bench_term_search [SAMPLES] [EVALUATIONS...]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "base/places.hpp"
#include "base/sexpr.hpp"
#include "egraph/runner.hpp"
#include "extract/from_egraph.hpp"
#include "extract/search_terms.hpp"
#include "extract/term_space.hpp"
#include "nest/schedule/estimate.hpp"
#include "nest/term/facts.hpp"
#include "rules/load.hpp"

using namespace loopegg;

int main(int argc, char** argv) {
    const int samples = argc > 1 ? std::atoi(argv[1]) : 10000;
    std::vector<std::size_t> budgets;
    for (int i = 2; i < argc; ++i) budgets.push_back(std::strtoul(argv[i], nullptr, 10));
    if (budgets.empty()) budgets = {250, 1000, 2000, 4000};
    const VectorMachine machine{2, 16, 32};
    const RuleBook book = load_rules(shipped("rules/llvm.rules"));
    const Phase phase{.name = "large", .sets = {"register-tiles", "tiling", "cpu", "undo"}, .iterations = 3, .nodes = 40000, .seconds = 20};
    const auto now = [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); };
    for (const char* text : {"(conv2d 1 1 64 64 32 32 3 3 1 1 1 1 1 1)", "(conv2d 1 1 256 64 14 14 1 1 1 1 0 0 1 1)", "(conv2d 1 4 16 16 16 16 3 3 1 1 1 1 1 1)", "(linear 128 512 128)", "(matmul 2 128 128 64)"}) {
        const Statement statement = statement_of(parse_term(text));
        const Term nest = nest_of(statement);
        EGraph graph;
        Binding binding;
        binding.facts = std::make_shared<NestAnalysis>(NestAnalysis::Options{.strict_fp = false, .proven = true, .machine = machine});
        graph.attach(binding.facts);
        const ClassId root = graph.add(nest);
        graph.rebuild();
        Runner(graph, bind_rules(book.rules_of(phase), binding)).run(limits_of(phase));
        const ClassId roots[] = {graph.find(root)};
        const EGraphCopy copy = copy_of(graph, roots);
        const ClassIndex from = copy.egraph.roots.front();
        const TermCost cost = [&](std::span<const Term> nests) {
            std::vector<double> all;
            for (const Term& n : nests) all.push_back(schedule_cost(statement, nest[1], n[1], machine));
            return all;
        };
        const TermSpace space(copy.egraph, from, {.size = {}, .direct = true});
        std::mt19937_64 random(1);
        double sampled = 1e300, began = now();
        for (int i = 0; i < samples; ++i) {
            const Term t = space.sample(random);
            sampled = std::min(sampled, cost(std::span(&t, 1))[0]);
        }
        fmt::print("{}: {} nodes, 10^{} terms; best of {} samples {:.4f} ({:.2f} s)\n", text, graph.node_count(), space.count().get_str().size() - 1, samples, sampled, now() - began);
        for (std::size_t evaluations : budgets) {
            began = now();
            const FoundTerms found = search_terms(copy.egraph, from, 10, cost, {.evaluations = evaluations});
            fmt::print("  {} asked about: {:.4f}, {:.3f} of the samples' best ({:.2f} s)\n", found.evaluated, found.best.front().cost, found.best.front().cost / sampled, now() - began);
        }
        std::fflush(stdout);
    }
}
