// Outputs that nobody reads: where they are, and that a network without them computes what it did.
#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "graph/builder.hpp"
#include "graph/carry_weights.hpp"
#include "graph/flops.hpp"
#include "graph/hidden_widths.hpp"
#include "graph/interpreter.hpp"
#include "graph/weights.hpp"
#include "graph/zoo/zoo.hpp"
#include "tests/domains.hpp"

using namespace loopegg;

namespace {

// x -> first -> bn -> relu -> second, and a shortcut around both where `residual` says so.
Graph block(const std::vector<std::string>& second_reads, bool residual = false) {
    GraphBuilder b("block");
    const std::string x = b.input("x", {1, 8, 5, 5});
    const std::string hidden = b.relu("relu", b.norm("bn", b.conv("first", x, {.out = 16, .kernel = 3, .padding = 1, .bias = true})));
    std::string y = b.conv("second", hidden, {.out = 16, .kernel = 3, .padding = 1});
    if (residual) y = b.add("sum", y, hidden);
    Graph g = b.finish({y});
    if (second_reads.empty()) return g;
    g.find("second")->domain = test::domain({second_reads});
    complete(g);
    return g;
}

std::size_t count(const Graph& g) { return hidden_widths(g).size(); }

}  // namespace

TEST_CASE("a hidden width lies between two sites and has no other reader", "[unit][graph]") {
    CHECK(count(block({})) == 1);
    CHECK(count(block({}, true)) == 0);
    const auto all = hidden_widths(zoo_graph("resnet34-cifar10"));
    CHECK(all.size() == 16);  // one in each block
    for (const HiddenWidth& h : all) CHECK(h.reader == h.writer.substr(0, h.writer.size() - 1) + "2");
    CHECK(count(zoo_graph("bert-tiny")) == 2);     // the wide layer of each encoder
    CHECK(count(zoo_graph("mobilenet_v2")) == 2);  // between blocks without a shortcut; inside one a depthwise convolution stands between
}

TEST_CASE("without outputs that nobody reads a network computes what it did", "[unit][graph][property]") {
    CHECK(rc::check("whatever part of the channels is read", [] {
        const std::string digit = *rc::gen::element<std::string>("ci%16", "ci%4", "ci%8", "ci/4%4", "ci/8%2");
        const std::int64_t radix = std::stoll(digit.substr(digit.find('%') + 1)), lo = *rc::gen::inRange<std::int64_t>(0, radix),
                           hi = *rc::gen::inRange<std::int64_t>(lo + 1, radix + 1);
        const Graph g = block({std::to_string(lo) + " <= " + digit + " < " + std::to_string(hi)});
        Graph less = without_unread_outputs(g);
        complete(less);
        RC_ASSERT(less.find("first")->domain.whole() == (hi - lo == radix));
        RC_ASSERT(macs(less) * radix == (macs(*g.find("first")) * (hi - lo)) + macs(*g.find("second")) * radix);
        const Weights weights = initial_weights(block({}), 3);
        const Tensors x{{"x", normal_tensor({1, 8, 5, 5}, 4, "x")}};
        RC_ASSERT(interpret(less, carry_weights(g, weights, less), x) == interpret(g, weights, x));
    }));
}

TEST_CASE("what is read, or restricted in other ways, stays", "[unit][graph]") {
    Graph tied = block({"ci/4%4 == co/4%4"});
    CHECK(without_unread_outputs(tied) == tied);
    Graph read = block({"0 <= ci%16 < 8"});
    read.find("first")->domain = {{DomainPart{{{{"co", 1, 16}, 0, 4}}, {}}}, Restore::zero};  // the reader misses some of these
    complete(read);
    CHECK(without_unread_outputs(read) == read);
    Graph repeated = block({"0 <= ci%16 < 8"});
    repeated.find("first")->domain = {{DomainPart{{{{"oh", 1, 5}, 0, 1}}, {}}}, Restore::repeat};
    complete(repeated);
    CHECK(without_unread_outputs(repeated) == repeated);
}
