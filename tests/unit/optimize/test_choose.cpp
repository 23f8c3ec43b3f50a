#include <algorithm>
#include <cmath>

#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "optimize/tune/choose.hpp"

using namespace loopegg;

namespace {

// Every combination, the slow and obvious way.
std::optional<double> best_by_trying(const std::vector<std::vector<NodeOption>>& nodes) {
    std::optional<double> best;
    std::vector<std::size_t> pick(nodes.size(), 0);
    while (true) {
        double ms = 0;
        bool together = true;
        for (std::size_t n = 0; n < nodes.size(); ++n) {
            const NodeOption& o = nodes[n][pick[n]];
            ms += o.ms;
            for (const NodeOption::Company& with : o.only_with) together = together && std::ranges::count(with.options, pick[with.node]) > 0;
        }
        if (together && (!best || ms < *best)) best = ms;
        std::size_t n = 0;
        while (n < nodes.size() && ++pick[n] == nodes[n].size()) pick[n++] = 0;
        if (n == nodes.size()) return best;
    }
}

}  // namespace

TEST_CASE("the choice is the best of all choices", "[unit][optimize][property]") {
    CHECK(rc::check("against trying them all", [] {
        std::vector<std::vector<NodeOption>> nodes(static_cast<std::size_t>(*rc::gen::inRange(1, 5)));
        for (auto& options : nodes) {
            options.resize(static_cast<std::size_t>(*rc::gen::inRange(1, 4)));
            for (NodeOption& o : options) o.ms = *rc::gen::inRange(1, 100) / 8.0;
        }
        for (std::size_t n = 0; n + 1 < nodes.size(); ++n)  // any option of a node may depend on the two nodes after it
            for (std::size_t other = n + 1; other < std::min(n + 3, nodes.size()); ++other)
                for (NodeOption& option : nodes[n])
                    if (*rc::gen::arbitrary<bool>()) {
                        NodeOption::Company company{other, {}};
                        for (std::size_t o = 0; o < nodes[other].size(); ++o)
                            if (*rc::gen::arbitrary<bool>()) company.options.push_back(o);
                        option.only_with.push_back(company);
                    }
        const auto expected = best_by_trying(nodes);
        const auto got = choose(nodes);
        RC_ASSERT(expected.has_value() == got.has_value());
        if (!expected) return;
        RC_ASSERT(std::abs(*expected - got->ms) < 1e-6);
        double sum = 0;
        for (std::size_t n = 0; n < nodes.size(); ++n) sum += nodes[n].at(got->picked[n]).ms;
        RC_ASSERT(std::abs(sum - got->ms) < 1e-6);
    }));
}

TEST_CASE("a network without nodes has an empty choice", "[unit][optimize]") { CHECK(choose({})->picked.empty()); }
