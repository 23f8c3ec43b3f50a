// The steps that lead from the original network to one of the front.
#include <catch2/catch.hpp>

#include "nest/net/graph_of_net.hpp"
#include "nest/net/net.hpp"
#include "network/derivation.hpp"
#include "small_networks.hpp"

using namespace loopegg;

TEST_CASE("every network of a front has steps that lead to it, neural ones first", "[unit][network]") {
    SmallFront small(residual_chain(), network_rules(shipped_network_rules()));
    NetRewriter rewriter(small.book);
    std::size_t neural = 0;
    for (std::size_t i = 0; i < small.front->curve().size(); ++i) {
        const FrontPoint point = small.front->network(i);
        const Derivation derivation = derive(small.network, small.book, rewriter, point);
        CHECK(graph_of(derivation.to, small.original) == graph_of(point.term, small.original));
        bool exact = false;
        for (const NetStep& step : derivation.steps) {
            CHECK_FALSE((exact && step.neural));
            exact |= !step.neural, neural += step.neural;
            if (step.neural) CHECK_FALSE(step.sites.empty());
            if (step.neural) CHECK(step.guards.size() > 0);
        }
        // The steps alone, on the term of the original network.
        Term term = derivation.from;
        for (const NetStep& step : derivation.steps) {
            const Term* part = &term;
            for (std::uint32_t child : step.at) part = &(*part)[child];
            const auto made = rewriter.apply(step.rule, *part, step.with);
            REQUIRE(made);
            term = with(term, step.at, *made);
        }
        CHECK(term == derivation.to);
    }
    CHECK(neural > 0);
}
