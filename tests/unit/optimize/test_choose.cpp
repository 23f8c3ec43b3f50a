#include <algorithm>

#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "optimize/tune/choose.hpp"

using namespace loopegg;

namespace {

// Every combination, the slow and obvious way.
std::optional<double> best_by_trying(const std::vector<std::vector<SiteOption>>& sites, const ChoiceLimits& limits) {
    std::optional<double> best;
    std::vector<std::size_t> pick(sites.size(), 0);
    while (true) {
        double latency = 0, capacity = 0;
        std::int64_t parameters = 0;
        bool together = true;
        for (const AtMost& few : limits.at_most)
            together =
                together && static_cast<std::size_t>(std::ranges::count_if(few.options, [&](const auto& o) { return pick[o.first] == o.second; })) <= few.count;
        for (std::size_t s = 0; s < sites.size(); ++s) {
            const SiteOption& o = sites[s][pick[s]];
            latency += o.latency_ms, capacity += o.capacity_cost, parameters += o.parameters;
            for (const SiteOption::Company& with : o.only_with) together = together && std::ranges::count(with.options, pick[with.site]) > 0;
        }
        if (together && latency <= limits.latency_ms && capacity <= limits.capacity + 1e-9 && parameters <= limits.parameters && (!best || latency < *best))
            best = latency;
        std::size_t s = 0;
        while (s < sites.size() && ++pick[s] == sites[s].size()) pick[s++] = 0;
        if (s == sites.size()) return best;
    }
}

}  // namespace

TEST_CASE("the choice is the best of all choices", "[unit][optimize][property]") {
    CHECK(rc::check("against trying them all", [] {
        std::vector<std::vector<SiteOption>> sites(static_cast<std::size_t>(*rc::gen::inRange(1, 5)));
        for (auto& options : sites) {
            options.resize(static_cast<std::size_t>(*rc::gen::inRange(1, 4)));
            for (SiteOption& o : options) o = {0, *rc::gen::inRange(1, 100) / 8.0, *rc::gen::inRange(0, 100) / 8.0, *rc::gen::inRange(1, 50)};
        }
        for (std::size_t s = 0; s + 1 < sites.size(); ++s)  // the last option of a site may depend on the two sites after it
            for (std::size_t other = s + 1; other < std::min(s + 3, sites.size()); ++other)
                if (sites[s].size() > 1 && *rc::gen::arbitrary<bool>()) {
                    SiteOption::Company company{other, {}};
                    for (std::size_t o = 0; o < sites[other].size(); ++o)
                        if (*rc::gen::arbitrary<bool>()) company.options.push_back(o);
                    sites[s].back().only_with.push_back(company);
                }
        ChoiceLimits limits;
        limits.capacity = *rc::gen::inRange(0, 200) / 8.0;
        limits.parameters = *rc::gen::inRange(1, 150);
        AtMost few{{}, *rc::gen::inRange<std::size_t>(0, 3)};
        for (std::size_t s = 0; s < sites.size(); ++s)
            for (std::size_t o = 1; o < sites[s].size(); ++o)
                if (*rc::gen::arbitrary<bool>()) few.options.emplace_back(s, o);
        limits.at_most.push_back(few);
        auto expected = best_by_trying(sites, limits);
        auto got = choose(sites, limits);
        RC_ASSERT(expected.has_value() == got.choice.has_value());
        if (expected)
            RC_ASSERT(std::abs(*expected - got.choice->latency_ms) < 1e-6);
        else
            RC_ASSERT(!got.why.empty());
    }));
}

TEST_CASE("limits that exclude each other are answered with the nearest possible ones", "[unit][optimize]") {
    std::vector<std::vector<SiteOption>> sites{{{0, 10, 0, 100}, {1, 5, 1, 50}}};
    ChoiceLimits limits;
    limits.parameters = 40;
    auto r = choose(sites, limits);
    REQUIRE_FALSE(r.choice);
    CHECK(r.why == "no choice meets all limits; with the others as given, possible would be --max-params 50");
}

TEST_CASE("the front goes from the original to the fastest and always gets faster", "[unit][optimize]") {
    std::vector<std::vector<SiteOption>> sites{{{0, 10, 0, 1}, {1, 5, 1, 1}}, {{0, 8, 0, 1}, {1, 2, 3, 1}}};
    auto front = pareto_front(sites, {}, 9);
    REQUIRE(front.size() == 4);
    CHECK(front.front().latency_ms == Approx(18));
    CHECK(front.back().latency_ms == Approx(7));
}

TEST_CASE("a choice near another differs at few sites and spends no more than it may beside it", "[unit][optimize][property]") {
    CHECK(rc::check("from any choice, at any prices", [] {
        std::vector<std::vector<SiteOption>> sites(static_cast<std::size_t>(*rc::gen::inRange(1, 5)));
        Prices prices;
        std::vector<std::size_t> picked;
        for (auto& options : sites) {
            options.resize(static_cast<std::size_t>(*rc::gen::inRange(1, 4)));
            picked.push_back(*rc::gen::inRange<std::size_t>(0, options.size()));
            prices.emplace_back();
            for (std::size_t o = 0; o < options.size(); ++o) {
                options[o] = {o, *rc::gen::inRange(1, 100) / 8.0, *rc::gen::inRange(0, 100) / 8.0, *rc::gen::inRange(1, 50)};
                prices.back().push_back(o == picked.back() ? 0 : *rc::gen::inRange(-50, 50) / 8.0);
            }
        }
        const NetworkChoice from = add_up(sites, picked);
        const auto changes = *rc::gen::inRange<std::size_t>(0, 4);
        ChoiceLimits limits;
        limits.capacity = *rc::gen::inRange(0, 40) / 8.0;
        const auto near = choose_near(sites, from, prices, changes, limits);
        RC_ASSERT(near.has_value());  // `from` itself is one
        RC_ASSERT(near->latency_ms <= from.latency_ms + 1e-9);
        std::size_t changed = 0;
        double spent = 0;
        for (std::size_t s = 0; s < sites.size(); ++s) changed += near->picked[s] != picked[s], spent += prices[s][near->picked[s]];
        RC_ASSERT(changed <= changes);
        RC_ASSERT(spent <= limits.capacity + 1e-6);
        RC_ASSERT(std::abs(near->capacity_cost - add_up(sites, near->picked).capacity_cost) < 1e-9);  // on the scale of the options, not of the prices

        // No single change does better.
        if (changes > 0)
            for (std::size_t s = 0; s < sites.size(); ++s)
                for (std::size_t o = 0; o < sites[s].size(); ++o)
                    if (prices[s][o] <= limits.capacity)
                        RC_ASSERT(near->latency_ms <= from.latency_ms - sites[s][picked[s]].latency_ms + sites[s][o].latency_ms + 1e-6);
    }));
}
