// Which sites the guard is asked about together, and what becomes of its answers, with guards that answer at once.
#include <cmath>
#include <functional>
#include <set>

#include <catch2/catch.hpp>

#include "base/places.hpp"
#include "graph/builder.hpp"
#include "graph/zoo/zoo.hpp"
#include "optimize/discover.hpp"
#include "optimize/families.hpp"
#include "rules/load.hpp"

using namespace loopegg;

namespace {

// Five layers as in a densely connected block: each reads what all before it have made.
Graph dense_block() {
    GraphBuilder b("block");
    std::string made = b.input("image", {1, 8, 8, 8});
    for (int i = 1; i <= 5; ++i) {
        const std::string layer = "layer" + std::to_string(i);
        const std::string narrow = b.relu(layer + ".relu", b.conv(layer + ".conv1", made, {.out = 16, .kernel = 1}));
        made = b.node("concat", layer + ".cat", {made, b.conv(layer + ".conv2", narrow, {.out = 8, .kernel = 3, .padding = 1})});
    }
    return b.finish({made});
}

// Answers by the number of sites that a network changes, and remembers which these were.
class Counting : public CapacityOracle {
public:
    explicit Counting(std::size_t most) : most_(most) {}
    std::vector<Verdict> judge(const Graph& original, std::span<const Graph> variants) override {
        std::vector<Verdict> out;
        for (const Graph& v : variants) {
            std::set<std::string> changed;
            for (const Node& node : original.nodes)
                if (const Node& other = *v.find(node.name); other.attrs != node.attrs || !(other.domain == node.domain)) changed.insert(node.name);
            out.push_back({changed.size() <= most_, "by their number", {{"kept", std::pow(0.9, changed.size())}, {"low", std::pow(0.8, changed.size())}}});
            asked.push_back(std::move(changed));
        }
        return out;
    }
    std::vector<std::set<std::string>> asked;

private:
    std::size_t most_;
};

Discovery discovered(const Graph& graph, const Sites& sites, CapacityOracle& oracle, std::int64_t budget) {
    static const RuleBook book = load_rules(shipped("rules/discover.rules"));
    Progress quiet(Progress::Mode::quiet);
    return discover(graph, sites, {book, *book.find_phase("discover")}, oracle, {.budget = budget}, quiet);
}

std::set<std::string> names(const Sites& sites, const std::vector<std::size_t>& run) {
    std::set<std::string> out;
    for (std::size_t s : run) out.insert(sites.all[s].name);
    return out;
}

}  // namespace

TEST_CASE("a family differs in input channels alone, and reads and writes hidden widths alike", "[unit][optimize]") {
    const Graph graph = dense_block();
    const Sites sites = sites_of(graph, {"layer4.conv1"});
    REQUIRE(sites.kinds.size() == 6);  // each 1x1 is a kind of its own, the 3x3 are one
    const auto runs = families_of(graph, sites, 12);
    REQUIRE(runs.size() == 2);
    CHECK(names(sites, runs[0]) == std::set<std::string>{"layer1.conv1", "layer2.conv1", "layer3.conv1", "layer5.conv1"});
    CHECK(names(sites, runs[1]) == std::set<std::string>{"layer1.conv2", "layer2.conv2", "layer3.conv2", "layer4.conv2", "layer5.conv2"});
    const auto short_runs = families_of(graph, sites, 3);
    REQUIRE(short_runs.size() == 4);
    CHECK(names(sites, short_runs[0]) == std::set<std::string>{"layer1.conv1", "layer2.conv1"});

    const Graph residual = zoo_graph("resnet34-cifar10");
    const Sites blocks = sites_of(residual);
    for (const auto& run : families_of(residual, blocks, 12)) {
        std::set<char> last;
        for (const std::string& name : names(blocks, run)) last.insert(name.back());
        CHECK(last.size() == 1);  // conv1 and conv2 of a block have one nest, and not one role
    }
}

TEST_CASE("what sites lose together is shared out by the work that each saves", "[unit][optimize]") {
    const Verdict joint{true, "enough", {{"kept", 0.64}, {"kept_by_size", 0.6561}, {"high", 0.81}, {"capacity", 0.5}}};
    const auto shares = verdict_of_each_site(joint, {"a", "b", "c"}, {1, 1, 2});
    REQUIRE(shares.size() == 3);
    CHECK(shares[2].evidence["kept"].get<double>() == Approx(0.8));
    CHECK(shares[2].evidence["kept_by_size"].get<double>() == Approx(0.81));
    CHECK(shares[2].evidence["high"].get<double>() == Approx(0.9));
    CHECK(shares[0].evidence["kept"].get<double>() * shares[1].evidence["kept"].get<double>() == Approx(0.8));
    CHECK(shares[0].evidence["together"] == nlohmann::json{{"sites", {"a", "b", "c"}}, {"kept", 0.64}});
    CHECK(shares[0].evidence["capacity"] == 0.5);
    CHECK(shares[0].allowed);
    CHECK(verdict_of_each_site(joint, {"a"}, {7})[0].evidence == joint.evidence);
    CHECK_FALSE(verdict_of_each_site({false, "broken", {}}, {"a", "b"}, {1, 1})[1].allowed);
}

TEST_CASE("a question is about a family, and the budget counts questions", "[unit][optimize]") {
    const Graph graph = dense_block();
    const Sites sites = sites_of(graph, {"layer4.conv1"});
    Counting oracle(100);
    const Discovery found = discovered(graph, sites, oracle, 40);
    CHECK(found.configurations == static_cast<std::int64_t>(oracle.asked.size()));
    CHECK(found.configurations <= 40);
    CHECK(found.rejected == 0);
    const auto runs = families_of(graph, sites, 12);
    std::size_t whole = 0, by_guard = 0;
    for (const auto& changed : oracle.asked) {
        CHECK_FALSE(changed.contains("layer4.conv1"));
        whole += changed == names(sites, runs[0]) || changed == names(sites, runs[1]);
    }
    CHECK(whole * 2 > oracle.asked.size());
    for (const Admission& a : found.admissions) {
        if (a.reader) continue;
        ++by_guard;
        CHECK(a.site != sites.index_of("layer4.conv1"));
        if (!a.verdict.evidence.contains("together")) continue;
        const std::size_t all = a.verdict.evidence["together"]["sites"].size();
        CHECK(a.verdict.evidence["together"]["kept"].get<double>() == Approx(std::pow(0.9, all)));
        CHECK(a.verdict.evidence["kept"].get<double>() > std::pow(0.9, all));
    }
    CHECK(by_guard > 2 * oracle.asked.size());  // one question tells of several sites
}

TEST_CASE("what is refused for a family is asked of every second site, down to single ones", "[unit][optimize]") {
    const Graph graph = dense_block();
    const Sites sites = sites_of(graph);
    Counting oracle(1);  // nothing but single sites
    const Discovery found = discovered(graph, sites, oracle, 60);
    CHECK(found.configurations == static_cast<std::int64_t>(oracle.asked.size()));
    CHECK(found.configurations <= 60);
    std::set<std::pair<std::size_t, std::size_t>> seen;
    std::size_t allowed = 0, refused = 0;
    for (const Admission& a : found.admissions) {
        if (a.reader) continue;
        CHECK(seen.emplace(a.site, a.variant).second);  // one answer for each, the last
        CHECK(a.verdict.allowed == !a.verdict.evidence.contains("together"));
        ++(a.verdict.allowed ? allowed : refused);
    }
    CHECK(allowed > 0);
    CHECK(refused > 0);  // the budget does not reach every single site
    CHECK(std::count_if(oracle.asked.begin(), oracle.asked.end(), [](const auto& changed) { return changed.size() > 1; }) == found.rejected);
    CHECK(std::any_of(oracle.asked.begin(), oracle.asked.end(), [](const auto& changed) {
        return changed == std::set<std::string>{"layer1.conv2", "layer3.conv2", "layer5.conv2"};
    }));
}
