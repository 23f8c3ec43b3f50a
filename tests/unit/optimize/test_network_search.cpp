// The choice of a whole network, with a guard that answers at once and times that are made up: what sizes tell must be put to use.
#include <cmath>
#include <map>

#include <catch2/catch.hpp>

#include "base/places.hpp"
#include "graph/flops.hpp"
#include "graph/zoo/zoo.hpp"
#include "optimize/stages.hpp"
#include "rules/load.hpp"

using namespace loopegg;

namespace {

// Keeps what is left of the stage that lost most: what a site loses beside the original says little of what it loses
// beside a network that was cut down elsewhere.
class Narrowest : public CapacityOracle {
public:
    explicit Narrowest(bool tells_sizes) : tells_sizes_(tells_sizes) {}

    std::vector<Verdict> judge(const Graph& original, std::span<const Graph> variants) override {
        std::vector<Verdict> out;
        for (const Graph& v : variants) {
            const double kept = narrowest(original, v);
            nlohmann::json evidence{{"kept", kept}, {"margin", kept - least}};
            if (tells_sizes_) evidence["kept_by_size"] = kept;
            out.push_back({kept >= least, "by its narrowest stage", evidence});
        }
        return out;
    }

    std::vector<double> kept_by_size(const Graph& original, std::span<const Graph> variants) override {
        std::vector<double> out;
        if (tells_sizes_)
            for (const Graph& v : variants) out.push_back(narrowest(original, v));
        return out;
    }

    static constexpr double least = 0.6;

private:
    static double narrowest(const Graph& original, const Graph& variant) {
        std::map<Shape, std::pair<double, double>> stages;
        for (const Node& node : original.nodes)
            if (macs(node) > 0)
                stages[node.shape].first += static_cast<double>(macs(node)), stages[node.shape].second += static_cast<double>(macs(*variant.find(node.name)));
        double kept = 1;
        for (const auto& [shape, work] : stages) kept = std::min(kept, std::sqrt(work.second / work.first));
        return kept;
    }

    bool tells_sizes_;
};

struct Chooser {
    Input input;
    RuleBook book = load_rules(shipped("rules/discover.rules"));

    Chooser() {
        input.graph = zoo_graph("resnet34-cifar10");
        input.sites = sites_of(input.graph);
    }

    Selection select_with(CapacityOracle&& oracle) const {
        Progress quiet(Progress::Mode::quiet);
        const Discovery found = discover(input.graph, input.sites, {book, *book.find_phase("discover")}, oracle, {.budget = 60}, quiet);
        Tuning tuning;
        for (const Variant& v : found.variants) {  // as if time were work
            TunedNest nest;
            nest.best.latency.emplace();
            nest.best.latency->median_ms = static_cast<double>(v.macs) / 1e8;
            tuning.best.push_back(std::move(nest));
        }
        return select({}, input, found, tuning, oracle, quiet);
    }
};

}  // namespace

TEST_CASE("prices beside the chosen network find a faster one that the guard allows", "[unit][optimize]") {
    const Chooser chooser;
    const Selection by_shares = chooser.select_with(Narrowest(false)), by_sizes = chooser.select_with(Narrowest(true));
    for (const Selection* s : {&by_shares, &by_sizes}) {
        CHECK(s->chosen.verdict.allowed);
        CHECK(kept_share(s->chosen.verdict) >= Narrowest::least);
        CHECK(s->chosen.choice.latency_ms < s->front.front().choice.latency_ms);
    }
    INFO(by_shares.chosen.choice.latency_ms << " ms by shares, " << by_sizes.chosen.choice.latency_ms << " by sizes");
    CHECK(by_sizes.chosen.choice.latency_ms < by_shares.chosen.choice.latency_ms);
}
