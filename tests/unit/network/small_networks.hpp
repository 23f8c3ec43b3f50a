// A small network and the shipped rules over networks, which tests may edit before they are read.
#pragma once
#include <string>

#include "base/files.hpp"
#include "base/places.hpp"
#include "fisher/measures.hpp"
#include "graph/builder.hpp"
#include "graph/flops.hpp"
#include "network/front.hpp"
#include "network/layer_costs.hpp"
#include "rules/load.hpp"

namespace loopegg {

// Three convolutions in a row, the first two of any width.
inline Graph chain_of(std::int64_t first, std::int64_t second) {
    GraphBuilder b("chain");
    std::string x = b.input("image", {1, 3, 8, 8});
    x = b.relu("relu1", b.conv("conv1", x, {.out = first, .kernel = 3, .padding = 1}));
    x = b.relu("relu2", b.conv("conv2", x, {.out = second, .kernel = 3, .padding = 1}));
    return b.finish({b.conv("conv3", x, {.out = 10, .kernel = 1})});
}

// A convolution, two residual blocks of one stream, and a convolution that reads them.
inline Graph residual_chain(std::int64_t width = 16) {
    GraphBuilder b("residual-chain");
    std::string x = b.relu("relu0", b.conv("conv0", b.input("image", {1, 3, 8, 8}), {.out = width, .kernel = 3, .padding = 1}));
    for (const std::string block : {"a", "b"}) {
        std::string y = b.relu("relu1" + block, b.conv("conv1" + block, x, {.out = width, .kernel = 3, .padding = 1}));
        y = b.conv("conv2" + block, y, {.out = width, .kernel = 3, .padding = 1});
        x = b.relu("relu2" + block, b.add("sum" + block, x, y));
    }
    return b.finish({b.conv("last", x, {.out = 10, .kernel = 1})});
}

inline std::string replaced_in(std::string text, const std::string& what, const std::string& by) {
    const std::size_t at = text.find(what);
    if (at == std::string::npos) throw std::logic_error("the shipped rules have no '" + what + "'");
    return text.replace(at, what.size(), by);
}

inline std::string shipped_network_rules() { return read_file(shipped("rules/networks.rules")); }

// The shipped rules, with streams and widths of any share of their channels.
inline std::string rules_of_every_width() {
    std::string text = shipped_network_rules();
    for (int both = 0; both < 2; ++both) text = replaced_in(text, "(shares 4 8 ?x)", "(shares 1 8 ?x)");
    return text;
}

// The rules of a text, as a phase that grows networks.
inline RuleBook network_rules(const std::string& text, const std::string& sets = "networks widths") {
    Loaded loaded = check_rules(make_source("test.rules", text + "\n(phase networks :rules " + sets + " :iterations 60 :nodes 400000)\n"), {.judge = false});
    if (!loaded.mistakes.empty()) throw std::logic_error(loaded.mistakes[0].what.message);
    return std::move(loaded.book);
}

// The front of a network by a latency that sizes determine.
struct SmallFront {
    SmallFront(Graph graph, RuleBook rules, FrontOptions options = {})
        : original(std::move(graph)),
          book(std::move(rules)),
          sizes(sizes_of(original)),
          loss(sizes),
          network(original, book, {}),
          costs(original, loss, [](const Node& node, const Term&) { return ms_of(node); }) {
        network.grow();
        front.emplace(network, loss, costs, options);
    }
    static double ms_of(const Node& node) { return 1e-3 * static_cast<double>(macs(node)) + 1; }

    Graph original;
    RuleBook book;
    MeasureInput sizes;
    StagewiseLoss loss;
    NetworkGraph network;
    SiteCosts costs;
    std::optional<Front> front;
};

}  // namespace loopegg
