#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include <cstdlib>
#include <set>

#include "graph/domain_sets.hpp"

using namespace loopegg;

namespace {

const std::vector<Axis> axes{{"co", 8}, {"ci", 6, true}, {"oh", 4}, {"kh", 3, true}};

Digit digit_of(const Axis& axis) {
    std::vector<std::int64_t> strides;
    for (std::int64_t s = 1; s <= axis.extent; ++s)
        if (axis.extent % s == 0) strides.push_back(s);
    std::int64_t stride = *rc::gen::elementOf(strides);
    std::vector<std::int64_t> radices;
    for (std::int64_t r = 1; r <= axis.extent / stride; ++r)
        if (axis.extent / stride % r == 0) radices.push_back(r);
    return {axis.name, stride, *rc::gen::elementOf(radices)};
}

DomainPart random_part() {
    DomainPart part;
    for (int i = *rc::gen::inRange(0, 3); i > 0; --i) {
        Digit d = digit_of(*rc::gen::elementOf(axes));
        std::int64_t lo = *rc::gen::inRange<std::int64_t>(0, d.radix);
        part.ranges.push_back({d, lo, *rc::gen::inRange<std::int64_t>(lo + 1, d.radix + 1)});
    }
    for (int i = *rc::gen::inRange(0, 3); i > 0; --i) {
        Digit a = digit_of(*rc::gen::elementOf(axes)), b = digit_of(*rc::gen::elementOf(axes));
        if (a.radix == b.radix) part.diagonals.push_back({a, b});
    }
    return part;
}

// Every instance, in the order of the axes.
std::vector<std::vector<std::int64_t>> instances() {
    std::vector<std::vector<std::int64_t>> all{{}};
    for (const Axis& axis : axes) {
        std::vector<std::vector<std::int64_t>> longer;
        for (const auto& head : all)
            for (std::int64_t v = 0; v < axis.extent; ++v) {
                longer.push_back(head);
                longer.back().push_back(v);
            }
        all = std::move(longer);
    }
    return all;
}

std::map<std::string, std::int64_t> named(const std::vector<std::int64_t>& values) {
    std::map<std::string, std::int64_t> out;
    for (std::size_t i = 0; i < axes.size(); ++i) out[axes[i].name] = values[i];
    return out;
}

}  // namespace

TEST_CASE("sets, boxes, counts and tests of a domain agree with its definition", "[unit][graph]") {
    CHECK(rc::check([] {
        Domain domain{{random_part()}};
        std::set<std::vector<std::int64_t>> defined;
        DomainTest test(domain, axes);
        for (const auto& i : instances()) {
            bool in = domain.contains(named(i));
            RC_ASSERT(test.contains(i.data()) == in);
            if (in) defined.insert(i);
        }
        RC_ASSERT(instance_count(domain, axes) == static_cast<std::int64_t>(defined.size()));
        std::size_t boxed = 0;
        for (const Box& box : boxes(domain, axes)) {
            std::size_t size = 1;
            std::vector<std::int64_t> first, last;
            for (const Run& run : box.runs) {
                size *= static_cast<std::size_t>(run.count);
                first.push_back(run.lo), last.push_back(run.lo + (run.count - 1) * run.stride);
            }
            RC_ASSERT(defined.contains(first));
            RC_ASSERT(defined.contains(last));
            boxed += size;
        }
        RC_ASSERT(boxed == defined.size());
        std::vector<char> seen = projection(domain, axes, {"co", "oh"});
        for (std::int64_t co = 0; co < 8; ++co)
            for (std::int64_t oh = 0; oh < 4; ++oh) {
                bool any = false;
                for (const auto& i : defined) any |= i[0] == co && i[2] == oh;
                RC_ASSERT(static_cast<bool>(seen[static_cast<std::size_t>(co * 4 + oh)]) == any);
            }
    }));
}

TEST_CASE("conditions are written and read back", "[unit][graph]") {
    CHECK(rc::check([] {
        DomainPart part = random_part(), back;
        for (const DigitRange& r : part.ranges) RC_ASSERT(add_condition(back, to_string(r)).empty());
        for (const DigitPair& p : part.diagonals) RC_ASSERT(add_condition(back, to_string(p)).empty());
        RC_ASSERT(back == part);
    }));
    DomainPart part;
    for (const char* bad : {"", "co", "co%2", "0 <= co < 2", "co%2 == ", "0 <= co%2 < 1 x", "-1 <= co%2 < 1", "co/%2 == ci%2", "CO%2 == ci%2"})
        CHECK_FALSE(add_condition(part, bad).empty());
}

TEST_CASE("runs are strided and few", "[unit][graph]") {
    CHECK(as_runs({0, 2, 4, 6}) == std::vector<Run>{{0, 4, 2}});
    CHECK(as_runs({0, 1, 4, 5}) == std::vector<Run>{{0, 2, 1}, {4, 2, 1}});
    CHECK(as_runs({3}) == std::vector<Run>{{3, 1, 1}});
}

TEST_CASE("what is not computed is repeated from the kept block, row or part", "[unit][graph]") {
    std::vector<Axis> line{{"co", 8}, {"ci", 2, true}};
    auto sources = [&](Domain d) { return output_sources(d, line); };
    using Ints = std::vector<std::int64_t>;
    CHECK(sources({{{{{{"co", 1, 8}, 0, 4}}, {}}}, Restore::repeat}) == Ints{0, 1, 2, 3, 0, 1, 2, 3});
    CHECK(sources({{{{{{"co", 1, 2}, 0, 1}}, {}}}, Restore::repeat}) == Ints{0, 0, 2, 2, 4, 4, 6, 6});
    CHECK(sources({{{{{{"co", 1, 8}, 0, 4}}, {}}}, Restore::zero}) == Ints{0, 1, 2, 3, -1, -1, -1, -1});
    // The second half was cut off and then kept by half: what it lost comes from itself, not from the first half.
    Domain halves{{{{{{"co", 4, 2}, 0, 1}}, {}}, {{{{"co", 4, 2}, 1, 2}, {{"co", 1, 4}, 0, 2}}, {}}}, Restore::repeat};
    CHECK(sources(halves) == Ints{0, 1, 2, 3, 4, 5, 4, 5});
}
