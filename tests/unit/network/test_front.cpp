// The front of an e-graph: against every network, against the guard, and by rules that a user edits.
#include <set>

#include <catch2/catch.hpp>

#include "nest/net/net.hpp"
#include "network/derivation.hpp"
#include "small_networks.hpp"

using namespace loopegg;

namespace {

double points_of(const MeasureInput& whole, const Graph& graph) { return expected_loss(whole, loss_parts(whole, sizes_of(graph))).points; }

double ms_of(const Graph& graph) {
    double ms = 0;
    for (const Node& node : graph.nodes)
        if (macs(node) > 0) ms += SmallFront::ms_of(node);
    return ms;
}

std::vector<Graph> networks_of(const SmallFront& small) {
    std::vector<Graph> all;
    for (std::size_t i = 0; i < small.front->curve().size(); ++i) all.push_back(graph_of(small.front->network(i).term, small.original));
    return all;
}

std::set<std::int64_t> widths_of(const std::vector<Graph>& networks, const std::string& site) {
    std::set<std::int64_t> all;
    for (const Graph& graph : networks)
        for (const Node& node : graph.nodes)
            if (node.name == site) all.insert(node.shape.at(1));
    return all;
}

bool has(const Graph& graph, const std::string& site) {
    return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& n) { return n.name == site; });
}

}  // namespace

TEST_CASE("the front of a chain is the best of all its networks", "[unit][network]") {
    // Points are counted in 65,535 steps: these are 13 points.
    const SmallFront small(chain_of(32, 32), network_rules(rules_of_every_width()), {.mixing_precision = 1e-4, .points_precision = 2e-4});
    const auto curve = small.front->curve();
    REQUIRE(curve.size() > 5);
    std::vector<std::pair<double, double>> all;
    for (std::int64_t first = 4; first <= 32; first += 4)
        for (std::int64_t second = 4; second <= 32; second += 4) {
            const Graph graph = chain_of(first, second);
            all.emplace_back(ms_of(graph), points_of(small.sizes, graph));
        }
    for (const auto& [ms, points] : all) {
        double best = 1e9;
        for (const auto& [on_front, lost] : curve)
            if (on_front <= ms + 1e-9) best = std::min(best, lost);
        if (points < 8) CHECK(best <= points + 0.01);
    }
    for (const auto& [ms, points] : curve)
        CHECK(std::any_of(all.begin(), all.end(), [&](const auto& one) { return one.first == Approx(ms) && one.second == Approx(points).margin(0.01); }));
}

TEST_CASE("a network of the front takes as long and loses as much as its label says", "[unit][network]") {
    const SmallFront small(residual_chain(), network_rules(shipped_network_rules()));
    REQUIRE(small.front->curve().size() > 5);
    for (std::size_t i = 0; i < small.front->curve().size(); ++i) {
        const FrontPoint point = small.front->network(i);
        const Graph graph = graph_of(point.term, small.original);
        CHECK(ms_of(graph) == Approx(point.ms));
        CHECK(points_of(small.sizes, graph) == Approx(point.points).margin(1e-3));
    }
}

TEST_CASE("no uniform scaling beats the front", "[unit][network]") {
    const SmallFront small(residual_chain(32), network_rules(rules_of_every_width()), {.max_points = 1e6});
    for (std::int64_t width = 4; width <= 32; width += 4) {
        const Graph scaled = residual_chain(width);
        const double ms = ms_of(scaled), points = points_of(small.sizes, scaled);
        INFO(width << " of 32 channels: " << ms << " ms, " << points << " points");
        CHECK(std::any_of(small.front->curve().begin(), small.front->curve().end(),
                          [&](const auto& p) { return p.first <= ms + 1e-9 && p.second <= points + 0.01; }));
    }
}

TEST_CASE("the bound is never above the front, and the gap says by how much the front may miss", "[unit][network]") {
    const RuleBook book = network_rules(shipped_network_rules());
    const SmallFront coarse(residual_chain(), network_rules(shipped_network_rules()), {.mixing_precision = 0.05, .points_precision = 0.05, .max_labels = 50}),
        fine(residual_chain(), network_rules(shipped_network_rules()), {.mixing_precision = 1e-3, .points_precision = 1e-3}),
        bound(residual_chain(), network_rules(shipped_network_rules()),
              {.mixing_precision = 0.05, .points_precision = 0.05, .max_labels = 50, .optimistic = true});
    const double gap = gap_between(coarse.front->curve(), bound.front->curve());
    CHECK(gap >= 0);
    CHECK(gap_between(coarse.front->curve(), fine.front->curve()) <= gap + 1e-6);
}

TEST_CASE("without drop-branch in the rule file, no network of the front drops a branch", "[unit][network]") {
    const SmallFront all(residual_chain(), network_rules(shipped_network_rules()));
    const auto dropped = [](const std::vector<Graph>& networks) {
        return std::any_of(networks.begin(), networks.end(), [](const Graph& g) { return !has(g, "conv1a") || !has(g, "conv1b"); });
    };
    CHECK(dropped(networks_of(all)));
    const SmallFront without(residual_chain(),
                             network_rules(replaced_in(shipped_network_rules(), "(computes ?f) (free ?f) (capacity)", "(= 0 1) (computes ?f) (capacity)")));
    CHECK(without.front->curve().size() > 1);
    CHECK_FALSE(dropped(networks_of(without)));
}

TEST_CASE("of the widths that a rule lists, only those come back", "[unit][network]") {
    const SmallFront shipped(chain_of(32, 32), network_rules(shipped_network_rules()));
    for (const char* site : {"conv1", "conv2"}) {
        const std::set<std::int64_t> widths = widths_of(networks_of(shipped), site), listed_widths{16, 20, 24, 28, 32};
        CHECK(widths.size() > 2);
        CHECK(std::includes(listed_widths.begin(), listed_widths.end(), widths.begin(), widths.end()));
    }
    std::string text = shipped_network_rules();
    text = replaced_in(text, ":for ?w (shares 4 8 ?x) :when (narrowable ?x) (whole ?x) (computes ?y)",
                       ":for ?w (list 8 32) :when (narrowable ?x) (whole ?x) (computes ?y)");
    const SmallFront listed(chain_of(32, 32), network_rules(text));
    for (const char* site : {"conv1", "conv2"})
        for (std::int64_t width : widths_of(networks_of(listed), site)) CHECK((width == 8 || width == 32));
    CHECK(widths_of(networks_of(listed), "conv1").contains(8));
    const SmallFront halves(chain_of(32, 32),
                            network_rules(replaced_in(shipped_network_rules(), "(shares 4 8 ?x) :when (narrowable ?x) (whole ?x) (computes ?y)",
                                                      "(shares 1 2 ?x) :when (narrowable ?x) (whole ?x) (computes ?y)")));
    CHECK(widths_of(networks_of(halves), "conv1") == std::set<std::int64_t>{16, 32});
}

TEST_CASE("a custom rule over networks is on the front where it is faster", "[unit][network]") {
    const std::string skip =
        "(ruleset own (rule skip-layer (row ?x (row ?y ?z)) ~> (row ?x ?z) :when (computes ?y) (= (channels ?x) (channels ?y)) (capacity)))";
    const SmallFront small(chain_of(32, 32), network_rules(shipped_network_rules() + skip, "own widths"), {.max_points = 1e6});
    const std::vector<Graph> networks = networks_of(small);
    CHECK(std::any_of(networks.begin(), networks.end(), [](const Graph& g) { return !has(g, "conv2") && has(g, "conv1"); }));
}

TEST_CASE("restrictions of single layers are on the front where they pay, in narrower layers, too", "[unit][network]") {
    const RuleBook book = load_rules(shipped("rules/discover-layers.rules"), {.judge = false, .deep = false});
    const Graph original = residual_chain();
    const MeasureInput sizes = sizes_of(original);
    const StagewiseLoss loss(sizes);
    NetworkGraph network(original, book, {});
    network.grow();
    // Of all restrictions, this machine computes only outputs whose rows are in diagonal blocks fast.
    const auto over_rows = [](const Node& node) {
        return !node.domain.whole() && to_string(node.domain).find("oh") != std::string::npos && node.domain.restore == Restore::none;
    };
    SiteCosts costs(original, loss, [&](const Node& node, const Term&) { return SmallFront::ms_of(node) * (over_rows(node) ? 0.1 : 1); });
    const Front front(network, loss, costs, {.max_points = 6});
    NetRewriter rewriter(book);
    bool narrower = false;
    std::size_t restricted = 0;
    for (std::size_t i = 0; i < front.curve().size(); ++i) {
        const FrontPoint point = front.network(i);
        const Derivation derivation = derive(network, book, rewriter, point);
        for (const auto& [site, nest] : derivation.nests) {
            ++restricted;
            narrower |= site != "conv0" && nest.from != layers_of(network.term())[0].nest &&
                        original.find(site)->shape != graph_of(point.term, original).find(site)->shape;
            REQUIRE(!nest.steps.empty());
            CHECK(nest.steps.back().after == nest.to);
        }
        if (!derivation.nests.empty())
            CHECK(graph_of(with_nests(derivation.to, {{derivation.nests.begin()->first, derivation.nests.begin()->second.to}}), original)
                      .find(derivation.nests.begin()->first) != nullptr);
    }
    CHECK(restricted > 0);
    CHECK(narrower);
}

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
