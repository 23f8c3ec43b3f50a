// A family is not restricted in one way alone.
#include <catch2/catch.hpp>

#include "optimize/mixture.hpp"
#include "optimize/named_sequences.hpp"

using namespace loopegg;

namespace {

Variant variant(Domain domain) { return {0, std::move(domain), {}, 0, 0, {}, {}, ""}; }
Domain reads(std::int64_t kept) { return {{{{{{"ci", 1, 64}, 0, kept}}, {}}}}; }
Domain groups(std::int64_t n) { return {{{{}, {{{"co", 64 / n, n}, {"ci", 64 / n, n}}}}}}; }

}  // namespace

TEST_CASE("restrictions are of one kind whatever their size", "[unit][optimize]") {
    CHECK(restriction_kind({}).empty());
    CHECK(restriction_kind(reads(16)) == restriction_kind(reads(32)));
    CHECK(restriction_kind(groups(2)) == restriction_kind(groups(8)));
    CHECK(restriction_kind(reads(16)) != restriction_kind(groups(4)));
    Domain repeated{{{{{{"co", 1, 64}, 0, 16}}, {}}}, Restore::repeat}, zero = repeated;
    zero.restore = Restore::zero;
    CHECK(restriction_kind(repeated) != restriction_kind(zero));
}

TEST_CASE("at most half of a family is restricted in one way", "[unit][optimize]") {
    const std::vector<Variant> variants{variant({}), variant(reads(16)), variant(reads(32)), variant(groups(4))};
    // Of three sites alike, all are fastest with a part of their inputs; the fourth is a family by itself.
    std::vector<std::vector<SiteOption>> options(4, {{0, 9, 0, 1}, {1, 1, 0, 1}, {2, 2, 0, 1}, {3, 3, 0, 1}});
    ChoiceLimits limits;
    limits.at_most = mixture_limits({{0, 1, 2}, {3}}, options, variants);
    const ChooseResult mixed = choose(options, limits);
    REQUIRE(mixed.choice);
    CHECK(mixed.choice->latency_ms == Approx(1 + 1 + 3 + 1));
    // What only leaves out what its neighbour does not read is the neighbour's restriction, not its own.
    options[0][1].only_with = {{3, {1}}};
    limits.at_most = mixture_limits({{0, 1, 2}, {3}}, options, variants);
    CHECK(choose(options, limits).choice->latency_ms == Approx(4));
}
