#include "optimize/tune/choose.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "extract/within.hpp"

namespace loopegg {
namespace {

using Sites = std::vector<std::vector<SiteOption>>;

struct Objective {
    double latency = 0, capacity = 0, parameters = 0;  // the weight of each figure in the sum that is minimised
};

// The network as an e-graph: its root needs one class for each site, and a class has one node for each option. Limits are side constraints, and so are options
// that may be picked only together with options of another site.
class Network {
public:
    explicit Network(const Sites& sites) : sites_(sites) {
        std::vector<ClassIndex> needed;
        for (std::size_t s = 0; s < sites.size(); ++s) {
            needed.push_back(egraph_.add_class(fmt::format("site{}", s)));
            nodes_.emplace_back();
            for (const SiteOption& o : sites[s]) nodes_.back().push_back(egraph_.add_node(needed.back(), fmt::format("variant{}", o.variant), {}, 0));
        }
        const ClassIndex root = egraph_.add_class("network");
        egraph_.add_node(root, "network", needed, 0);
        egraph_.roots = {root};
    }

    std::optional<NetworkChoice> minimise(const Objective& weight, const ChoiceLimits& limits, double gap = 0) const {
        SerializedEGraph egraph = egraph_;
        for (std::size_t s = 0; s < sites_.size(); ++s)
            for (std::size_t i = 0; i < sites_[s].size(); ++i) {
                const SiteOption& o = sites_[s][i];
                egraph.nodes[nodes_[s][i]].cost =
                    weight.latency * o.latency_ms + weight.capacity * o.capacity_cost + weight.parameters * static_cast<double>(o.parameters);
            }
        std::vector<SideConstraint> constraints = company();
        for (const AtMost& some : limits.at_most) {
            constraints.push_back({.nodes = {}, .upper = static_cast<double>(some.count)});
            for (const auto& [site, option] : some.options) constraints.back().nodes.emplace_back(nodes_[site][option], 1.0);
        }
        const auto limit = [&](double upper, const auto& value) {
            if (upper == std::numeric_limits<double>::infinity()) return;
            constraints.push_back({.nodes = {}, .upper = upper});
            for (std::size_t s = 0; s < sites_.size(); ++s)
                for (std::size_t i = 0; i < sites_[s].size(); ++i) constraints.back().nodes.emplace_back(nodes_[s][i], value(sites_[s][i]));
        };
        limit(limits.capacity, [](const SiteOption& o) { return o.capacity_cost; });
        limit(limits.latency_ms, [](const SiteOption& o) { return o.latency_ms; });
        if (limits.parameters != std::numeric_limits<std::int64_t>::max())
            limit(static_cast<double>(limits.parameters), [](const SiteOption& o) { return static_cast<double>(o.parameters); });
        const auto found = extract_within(egraph, constraints, {.seconds = 60, .gap = gap});
        if (!found) return std::nullopt;
        std::vector<std::size_t> picked;
        for (std::size_t s = 0; s < sites_.size(); ++s) picked.push_back(found->choice[s] - nodes_[s].front());
        return add_up(sites_, std::move(picked));
    }

private:
    // An option that needs one of several others is picked at most as often as these are.
    std::vector<SideConstraint> company() const {
        std::vector<SideConstraint> all;
        for (std::size_t s = 0; s < sites_.size(); ++s)
            for (std::size_t i = 0; i < sites_[s].size(); ++i) {
                for (const SiteOption::Company& with : sites_[s][i].only_with) {
                    all.push_back({.nodes = {{nodes_[s][i], 1.0}}, .upper = 0});
                    for (std::size_t o : with.options) all.back().nodes.emplace_back(nodes_[with.site][o], -1.0);
                }
            }
        return all;
    }

    const Sites& sites_;
    SerializedEGraph egraph_;
    std::vector<std::vector<NodeIndex>> nodes_;  // by site and option
};

std::string nearest(const Network& network, const ChoiceLimits& limits) {
    std::vector<std::string> said;
    ChoiceLimits free = limits;
    free.parameters = std::numeric_limits<std::int64_t>::max();
    if (limits.parameters != free.parameters)
        if (auto c = network.minimise({0, 0, 1}, free)) said.push_back(fmt::format("--max-params {}", c->parameters));
    free = limits;
    free.latency_ms = std::numeric_limits<double>::infinity();
    if (limits.latency_ms != free.latency_ms)
        if (auto c = network.minimise({1, 0, 0}, free)) said.push_back(fmt::format("--max-latency {:.3f}", c->latency_ms * 1.001));
    free = limits;
    free.capacity = std::numeric_limits<double>::infinity();
    if (limits.capacity != free.capacity)
        if (auto c = network.minimise({0, 1, 0}, free))
            said.push_back(fmt::format("a capacity budget of {:.4f} instead of {:.4f}", c->capacity_cost, limits.capacity));
    std::string text = "no choice meets all limits";
    for (std::size_t i = 0; i < said.size(); ++i) text += (i == 0 ? "; with the others as given, possible would be " : ", or ") + said[i];
    return text;
}

}  // namespace

NetworkChoice add_up(const Sites& sites, std::vector<std::size_t> picked) {
    NetworkChoice c;
    for (std::size_t s = 0; s < sites.size(); ++s) {
        const SiteOption& o = sites[s][picked[s]];
        c.latency_ms += o.latency_ms, c.capacity_cost += o.capacity_cost, c.parameters += o.parameters;
    }
    c.picked = std::move(picked);
    return c;
}

ChooseResult choose(const Sites& sites, const ChoiceLimits& limits, double gap) {
    for (const auto& options : sites) require(!options.empty(), "a site without an option");
    if (sites.empty()) return {NetworkChoice{}, ""};
    const Network network(sites);
    if (auto c = network.minimise({1, 0, 0}, limits, gap)) return {c, ""};
    return {std::nullopt, nearest(network, limits)};
}

std::optional<NetworkChoice> choose_near(const Sites& sites, const NetworkChoice& from, const Prices& prices, std::size_t changes, ChoiceLimits limits,
                                         double gap) {
    Sites priced = sites;
    AtMost changed{{}, changes}, useless{{}, 0};
    for (std::size_t s = 0; s < sites.size(); ++s)
        for (std::size_t o = 0; o < sites[s].size(); ++o) {
            priced[s][o].capacity_cost = prices[s][o];
            if (o == from.picked[s]) continue;
            const bool gains = prices[s][o] < 0 || sites[s][o].latency_ms < sites[s][from.picked[s]].latency_ms;
            (gains ? changed : useless).options.emplace_back(s, o);
        }
    limits.at_most.push_back(std::move(changed));
    limits.at_most.push_back(std::move(useless));
    auto near = Network(priced).minimise({1, 0, 0}, limits, gap);
    if (!near) return std::nullopt;
    return add_up(sites, std::move(near->picked));
}

std::vector<NetworkChoice> pareto_front(const Sites& sites, const ChoiceLimits& limits, int points, double gap) {
    std::vector<NetworkChoice> front;
    auto fastest = choose(sites, limits, gap);
    if (!fastest.choice) return front;
    double most = fastest.choice->capacity_cost;
    for (int i = 0; i < points; ++i) {
        ChoiceLimits l = limits;
        l.capacity = std::min(limits.capacity, most * i / std::max(1, points - 1));
        auto r = choose(sites, l, gap);
        if (!r.choice) continue;
        bool better = front.empty() || r.choice->latency_ms < front.back().latency_ms - 1e-9;
        if (better) front.push_back(std::move(*r.choice));
    }
    return front;
}

}  // namespace loopegg
