#include <catch2/catch.hpp>

#include "bench/math_rules.hpp"
#include "egraph/runner.hpp"

using namespace loopegg;

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
