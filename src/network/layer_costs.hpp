// What each site with each nest adds to a network: its work, by the measures of the guard, and its time, by whoever knows times.
#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>

#include "graph/graph.hpp"
#include "network/front.hpp"

namespace loopegg {

// A network of one site: the node of the original with the sizes and the domain of a nest. Throws UserError where no node has such a nest.
Graph layer_alone(const Node& original, const Term& nest);

class SiteCosts final : public LayerCosts {
public:
    using Milliseconds = std::function<double(const Node& node, const Term& nest)>;  // `node`: with the sizes and the domain of the nest
    SiteCosts(const Graph& original, const StagewiseLoss& loss, Milliseconds ms);

    std::optional<LayerWork> of(const std::string& site, const Term& nest) override;
    // The nest is no choice for the site any more.
    void refuse(const std::string& site, const Term& nest) { refused_.insert(site + " " + to_string(nest)); }
    // Times have changed: they are asked for again.
    void forget_times();

private:
    struct Known {
        std::optional<LayerWork> work;
        SiteWork site;
        Node node;
        std::optional<Node> restoring;  // the convolution that brings left-out channels back
        bool timed = false;
    };
    const Graph& original_;
    const StagewiseLoss& loss_;
    Milliseconds ms_;
    std::map<std::string, double> steps_;  // by site: how many pixels of the input are between two neighbours that the site reads
    std::set<std::string> refused_;
    std::unordered_map<Term, Known> known_;  // by nest: sites that share a nest do the same work
};

}  // namespace loopegg
