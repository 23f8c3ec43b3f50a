#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include <cstdlib>
#include <set>

#include "graph/builder.hpp"
#include "graph/carry_weights.hpp"
#include "graph/domain_sets.hpp"
#include "graph/flops.hpp"
#include "graph/interpreter.hpp"
#include "graph/normalise.hpp"
#include "graph/weights.hpp"

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
            for (const StridedRun& run : box.runs) {
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
    CHECK(as_runs({0, 2, 4, 6}) == std::vector<StridedRun>{{0, 4, 2}});
    CHECK(as_runs({0, 1, 4, 5}) == std::vector<StridedRun>{{0, 2, 1}, {4, 2, 1}});
    CHECK(as_runs({3}) == std::vector<StridedRun>{{3, 1, 1}});
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

namespace {

Graph conv(std::vector<std::string> conditions, std::int64_t groups = 1, Restore restore = Restore::none) {
    GraphBuilder b("conv");
    Graph g =
        b.finish({b.norm("bn", b.conv("y", b.input("x", {1, 16, 9, 9}), {.out = 8, .kernel = 3, .stride = 2, .padding = 1, .groups = groups, .bias = true}))});
    DomainPart part;
    for (const std::string& c : conditions) REQUIRE(add_condition(part, c).empty());
    if (!conditions.empty()) g.nodes[0].domain = {{part}, restore};
    complete(g);
    return g;
}

void same_meaning(const Graph& restricted) {
    Graph dense = conv({}, restricted.nodes[0].integer("groups")), normal = normalise(restricted);
    Weights weights = initial_weights(dense, 3);
    Tensors x{{"x", normal_tensor({1, 16, 9, 9}, 4, "x")}};
    CHECK(interpret(normal, carry_weights(restricted, weights, normal), x) == interpret(restricted, weights, x));
    CHECK(macs(normal) == macs(restricted));
    CHECK(parameters(normal) == parameters(restricted));
}

}  // namespace

TEST_CASE("diagonal blocks become groups", "[unit][graph]") {
    Graph g = conv({"co/2%4 == ci/4%4"});
    CHECK(as_groups(g.nodes[0]) == 4);
    CHECK(normalise(g).nodes[0].integer("groups") == 4);
    same_meaning(g);
    same_meaning(conv({"co/2%2 == ci/4%2"}, 2));
    CHECK(as_groups(conv({"co/4%2 == ci/8%2", "co/2%2 == ci/4%2"}).nodes[0]) == 4);  // grouped twice
    CHECK(as_groups(conv({"co%8 == ci/2%8"}).nodes[0]) == 8);
}

TEST_CASE("other domains stay domains", "[unit][graph]") {
    for (const Graph& g :
         {conv({"co%4 == ci%4"}), conv({"0 <= ci%16 < 8"}), conv({"0 <= co%8 < 4"}, 1, Restore::repeat), conv({"oh/3%2 == ci/8%2"}), conv({"1 <= kh%3 < 3"})}) {
        CHECK_FALSE(as_groups(g.nodes[0]).has_value());
        same_meaning(g);
    }
    CHECK_FALSE(normalise(conv({"co%4 == ci%4"})).nodes[0].domain.whole());
}

TEST_CASE("a part of the kernel becomes a kernel", "[unit][graph]") {
    Graph g = conv({"1 <= kh%3 < 2", "1 <= kw%3 < 2"});
    CHECK(normalise(g).nodes[0].integers("kernel") == std::vector<std::int64_t>{1, 1});
    CHECK(normalise(g).nodes[0].domain.whole());
    same_meaning(g);
    same_meaning(conv({"0 <= kh%2 < 1"}));  // rows 0 and 2: a kernel of 2 with dilation 2
    Graph both = conv({"1 <= kw%3 < 2", "co/4%2 == ci/8%2"});
    CHECK(normalise(both).nodes[0].domain.whole());
    same_meaning(both);
}

TEST_CASE("fewer channels take the first weights, added nodes are drawn", "[unit][graph]") {
    GraphBuilder a("wide"), b("narrow");
    auto make = [](GraphBuilder& g, std::int64_t hidden, bool extra) {
        std::string x = g.norm("bn", g.conv("one", g.input("x", {1, 4, 5, 5}), {.out = hidden, .kernel = 1}));
        x = g.conv("two", x, {.out = 4, .kernel = 3, .padding = 1});
        return g.finish({extra ? g.conv("three", x, {.out = 2, .kernel = 1}) : x});
    };
    Graph wide = make(a, 8, false), narrow = make(b, 3, true);
    Weights w = initial_weights(wide, 1), v = carry_weights(wide, w, narrow, 7);
    CHECK(v.at("one.weight").shape == Shape{3, 4, 1, 1});
    CHECK(std::equal(v.at("one.weight").values.begin(), v.at("one.weight").values.end(), w.at("one.weight").values.begin()));
    CHECK(v.at("two.weight").shape == Shape{4, 3, 3, 3});
    CHECK(v.at("two.weight").values[27] == w.at("two.weight").values[72]);
    CHECK(v.at("bn.running_var").values == std::vector<float>{1, 1, 1});
    CHECK(v.at("three.weight") == initial_weights(narrow, 7).at("three.weight"));
}
