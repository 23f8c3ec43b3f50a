// Network terms: a graph becomes a term and comes back as it was, and a term's wrappers leave what the graph's own narrowing leaves.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/sexpr.hpp"
#include "graph/builder.hpp"
#include "graph/normalise.hpp"
#include "graph/operators.hpp"
#include "graph/zoo/zoo.hpp"
#include "nest/net/net.hpp"
#include "nest/net/net_sizes.hpp"
#include "nest/net/resize.hpp"

using namespace loopegg;

namespace {

// The term with another part where `find` says so; the first such part counts.
Term with_part(const Term& net, const std::function<std::optional<Term>(const Term&)>& find, bool& done) {
    if (done) return net;
    if (const auto part = find(net)) {
        done = true;
        return *part;
    }
    std::vector<Term> children;
    for (const Term& child : net.children()) children.push_back(is_net(child) ? with_part(child, find, done) : child);
    return children.empty() ? net : Term(net.op(), std::move(children));
}

Term changed(const Term& net, const std::function<std::optional<Term>(const Term&)>& find) {
    bool done = false;
    Term out = with_part(net, find, done);
    REQUIRE(done);
    return out;
}

bool ends_in(const Term& net, const std::string& site) {
    const std::vector<NetLayer> layers = layers_of(net);
    return !layers.empty() && layers.back().site == site;
}

}  // namespace

TEST_CASE("every network of the zoo is a term whose graph is the network", "[unit][nest]") {
    for (const ZooEntry& entry : zoo()) {
        INFO(entry.name);
        const Graph graph = normalise(entry.build());
        const Term net = net_of(graph);
        CHECK(graph_of(net, graph) == graph);
        CHECK(parse_term(to_string(net)) == net);
        std::size_t sites = 0;
        for (const Node& node : graph.nodes) sites += is_site(node);
        CHECK(layers_of(net).size() == sites);
    }
}

TEST_CASE("names of nodes are written so that terms can be read back", "[unit][nest]") {
    for (const char* name : {"layer1.0.conv1", "/features/Conv:0", "a b(c)", "same", "12", "@x", "%41", "\xC3\xA4"}) {
        CHECK(node_named(net_name(name)) == name);
        CHECK(parse_term(to_string(net_name(name))) == net_name(name));
    }
    CHECK_THROWS_AS(node_named(Term("conv1")), UserError);
}

TEST_CASE("a dropped branch, a narrow stream and a narrow width leave the graph that they say", "[unit][nest]") {
    const Graph graph = zoo_graph("resnet34-cifar10");
    const Term net = net_of(graph);
    const Term dropped = changed(net, [](const Term& t) -> std::optional<Term> {
        if (!t.is("join", 3) || !ends_in(t, "layer2.2.conv2")) return {};
        return Term("join", {t[0], t[1], Term("none", {t[2]})});
    });
    const Graph without = graph_of(dropped, graph);
    CHECK(without.find("layer2.2.conv1") == nullptr);
    CHECK(without.find("layer2.2.conv2") == nullptr);
    CHECK(without.find("layer2.3.conv1")->inputs[0] == "layer2.1.relu_1");  // the rectifier of a rectified value is left out

    const Term hidden = changed(net, [](const Term& t) -> std::optional<Term> {
        if (!t.is("row", 2) || !ends_in(t[0], "layer1.0.conv1") || !ends_in(t[1], "layer1.0.conv2")) return {};
        return Term("row", {Term("write", {Term(24), t[0]}), Term("read", {Term(24), t[1]})});
    });
    const Graph narrow = graph_of(hidden, graph);
    CHECK(narrow.find("layer1.0.conv1")->shape[1] == 24);
    CHECK(narrow.find("layer1.0.conv2")->shape[1] == 64);

    const Term stream = changed(net, [](const Term& t) -> std::optional<Term> {
        if (!t.is("row", 2) || !t[0].is("stream", 2) || !ends_in(t[0][0], "conv1")) return {};
        return Term("row", {Term("stream", {Term("write", {Term(48), t[0][0]}), Term("within", {Term(48), t[0][1]})}), Term("read", {Term(48), t[1]})});
    });
    const Graph thin = graph_of(stream, graph);
    for (const char* site : {"conv1", "layer1.0.conv2", "layer1.2.conv2"}) CHECK(thin.find(site)->shape[1] == 48);
    CHECK(thin.find("layer1.1.conv1")->shape[1] == 64);
    CHECK(thin.find("layer2.0.conv2")->shape[1] == 128);
}

TEST_CASE("terms that no graph computes are refused with the reason", "[unit][nest]") {
    const Graph graph = zoo_graph("resnet34-cifar10");
    const Term net = net_of(graph);
    const auto refusal = [&](const Term& term) {
        try {
            graph_of(term, graph);
        } catch (const UserError& e) {
            return e.diagnostics()[0].message;
        }
        return std::string();
    };
    const Term one_writer = changed(net, [](const Term& t) -> std::optional<Term> {
        if (!t.is("layer", 2) || !ends_in(t, "layer1.1.conv2")) return {};
        return Term("write", {Term(48), t});
    });
    CHECK(refusal(one_writer) == "'layer1.1.add' adds 48 channels to 64");
    CHECK(refusal(Term("row", {net, Term("layer", {net_name("nowhere"), channels_first(*graph.find("fc"))})})).starts_with("the network has no node"));
    CHECK(refusal(Term("row", {net, net})) == "'conv1' reads 3 channels, and 10 come in");
    CHECK(refusal(parse_term("(row same)")).find("is no network") != std::string::npos);
    const std::vector<std::string> kept{"layer1.0.conv1"};
    const Term kept_width = changed(net_of(graph, kept), [](const Term& t) -> std::optional<Term> {
        if (!t.is("row", 2) || !ends_in(t[0], "layer1.0.conv1") || !ends_in(t[1], "layer1.0.conv2")) return {};
        return Term("row", {Term("write", {Term(24), t[0]}), Term("read", {Term(24), t[1]})});
    });
    CHECK(refusal(kept_width) == "'layer1.0.conv1' is kept, and so are its channels");
}
