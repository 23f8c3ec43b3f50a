#include "optimize/tune/choose.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "extract/constrained.hpp"

namespace loopegg {
namespace {

constexpr double max_seconds = 60;  // a program of a large network is solved in a few

// An option that needs one of several others is picked at most as often as these are.
std::vector<SideConstraint> company(const std::vector<std::vector<NodeOption>>& nodes, const std::vector<std::vector<NodeIndex>>& places) {
    std::vector<SideConstraint> all;
    for (std::size_t n = 0; n < nodes.size(); ++n)
        for (std::size_t i = 0; i < nodes[n].size(); ++i)
            for (const NodeOption::Company& with : nodes[n][i].only_with) {
                all.push_back({.nodes = {{places[n][i], 1.0}}, .upper = 0});
                for (std::size_t o : with.options) all.back().nodes.emplace_back(places[with.node][o], -1.0);
            }
    return all;
}

}  // namespace

std::optional<NodeChoice> choose(const std::vector<std::vector<NodeOption>>& nodes) {
    if (nodes.empty()) return NodeChoice{};
    SerializedEGraph egraph;
    std::vector<ClassIndex> needed;
    std::vector<std::vector<NodeIndex>> places;  // by node and option
    for (std::size_t n = 0; n < nodes.size(); ++n) {
        require(!nodes[n].empty(), "a node without an option");
        needed.push_back(egraph.add_class(fmt::format("node{}", n)));
        places.emplace_back();
        for (std::size_t i = 0; i < nodes[n].size(); ++i)
            places.back().push_back(egraph.add_node(needed.back(), fmt::format("option{}", i), {}, nodes[n][i].ms));
    }
    const ClassIndex root = egraph.add_class("network");
    egraph.add_node(root, "network", needed, 0);
    egraph.roots = {root};

    const auto found = constrained_extract(egraph, company(nodes, places), {.seconds = max_seconds, .gap = 0});
    if (!found) return std::nullopt;
    NodeChoice choice;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
        choice.picked.push_back(found->choice[n] - places[n].front());
        choice.ms += nodes[n][choice.picked.back()].ms;
    }
    return choice;
}

}  // namespace loopegg
