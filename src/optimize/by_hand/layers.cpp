#include "optimize/by_hand/layers.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "nest/term/statement.hpp"
#include "optimize/run/sites.hpp"

namespace loopegg {
namespace {

std::string restoring(const std::string& site) { return site + ".restore"; }

// Layers with equal terms are the same layer.
Term term_of(const Graph& graph, const std::string& site) {
    const Node *node = graph.find(site), *back = graph.find(restoring(site));
    if (!node) return Term("dropped");
    return back ? Term("restored", {nest_of(*node), nest_of(*back)}) : nest_of(*node);
}

}  // namespace

Graph layer_of(const Graph& graph, const std::string& site) {
    Graph layer;
    layer.name = graph.name + "/" + site;
    for (const std::string& name : {site, restoring(site)})
        if (const Node* node = graph.find(name)) layer.nodes.push_back(*node);
    require(!layer.nodes.empty(), "the network has the site");
    for (const Node& node : layer.nodes)
        for (const std::string& input : node.inputs) {
            const bool known = layer.find(input) || std::any_of(layer.inputs.begin(), layer.inputs.end(), [&](const GraphInput& i) { return i.name == input; });
            if (!known) layer.inputs.push_back({input, graph.shape_of(input)});
        }
    layer.outputs = {layer.nodes.back().name};
    complete(layer);
    return layer;
}

std::vector<ChangedLayer> changed_layers(const Graph& before, const Graph& after) {
    std::vector<ChangedLayer> layers;
    std::map<std::string, std::size_t> place;  // by the layer before and after
    for (const Site& site : sites_of(before).all) {
        const Term was = term_of(before, site.name), is = term_of(after, site.name);
        if (was == is) continue;
        const auto [at, fresh] = place.try_emplace(to_string(was) + to_string(is), layers.size());
        if (fresh) layers.push_back({{}, layer_of(before, site.name), after.find(site.name) ? std::optional(layer_of(after, site.name)) : std::nullopt});
        layers[at->second].sites.push_back(site.name);
    }
    return layers;
}

}  // namespace loopegg
