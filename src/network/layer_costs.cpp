#include "network/layer_costs.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "fisher/measures.hpp"
#include "graph/operators.hpp"
#include "nest/domain/domain.hpp"
#include "nest/domain/with_domain.hpp"
#include "nest/net/resize.hpp"
#include "nest/term/grammar.hpp"
#include "nest/term/statement.hpp"

namespace loopegg {
namespace {

std::int64_t groups_of(const Statement& s) {
    const int g = s.axis("g");
    return g < 0 ? 1 : s.axes[static_cast<std::size_t>(g)].extent;
}

// How far apart the pixels are, in the input of the network, that neighbouring pixels of each value represent.
std::map<std::string, double> steps_of(const Graph& graph) {
    std::map<std::string, double> steps, reads;
    for (const Node& node : graph.nodes) {
        double step = 1;
        for (const std::string& input : node.inputs)
            if (const auto at = steps.find(input); at != steps.end()) step = std::max(step, at->second);
        reads[node.name] = step;
        const bool slides = node.op == "conv2d" || node.op == "max_pool" || node.op == "avg_pool";
        steps[node.name] = slides ? step * static_cast<double>(node.integers("stride")[0]) : step;
    }
    return reads;
}

// The variance of a uniform draw of one of a window's pixels (fisher/measures.cpp draws the same for whole networks).
double variance_of(const Node& node, double step) {
    if (node.op != "conv2d") return 0;
    const auto kernel = static_cast<double>(node.integers("kernel")[0]), apart = static_cast<double>(node.integers("dilation")[0]) * step;
    return (kernel * kernel - 1) / 12 * apart * apart;
}

double unread_of(const Node& node) {
    double unread = 0;
    for (std::size_t d = 0; node.op == "conv2d" && d < 2; ++d)
        unread -= std::log(std::min(1.0, static_cast<double>(node.integers("kernel")[d]) / static_cast<double>(node.integers("stride")[d])));
    return unread;
}

}  // namespace

Graph layer_alone(const Node& original, const Term& nest) {
    const Statement s = statement_of(nest_parts(nest).statement);
    Graph graph;
    graph.name = original.name;
    Node node = original;
    node.domain = {};
    std::vector<Shape> shapes = original.input_shapes;
    if (const std::int64_t in = input_channels(s), out = output_channels(s); in > 0) {
        shapes[0][node.op == "conv2d" ? 1 : shapes[0].size() - 1] = in;
        if (node.op == "conv2d") node.attrs["groups"] = groups_of(s);
        node.attrs[node.op == "conv2d" ? "out_channels" : "out_features"] = out;
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) graph.inputs.push_back({node.inputs[i] = "in" + std::to_string(i), shapes[i]});
    graph.nodes.push_back(std::move(node));
    graph.outputs = {original.name};
    complete(graph);
    const Domain domain = domain_of(nest);
    return domain.whole() ? graph : with_domain(graph, original.name, domain);
}

SiteCosts::SiteCosts(const Graph& original, const StagewiseLoss& loss, Milliseconds ms)
    : original_(original), loss_(loss), ms_(std::move(ms)), steps_(steps_of(original)) {}

std::optional<LayerWork> SiteCosts::of(const std::string& site, const Term& nest) {
    if (!refused_.empty() && refused_.contains(site + " " + to_string(nest))) return {};
    const auto [at, fresh] = known_.try_emplace(nest);
    Known& known = at->second;
    const Node* original = original_.find(site);
    require(original != nullptr, "a site of the network");
    if (fresh) {
        try {
            const Graph alone = layer_alone(*original, nest);
            known.site = sizes_of(alone).sites.at(0);
            known.node = *alone.find(site);
            if (const Node& last = alone.nodes.back(); last.name != site && is_site(last)) known.restoring = last;
            known.work = LayerWork{.stage = loss_.stage_of(known.site.places), .unread = unread_of(known.node)};
            known.work->work.add(known.site);
        } catch (const UserError&) {  // the network refuses such a node, for example because channels would not come back
            known.work.reset();
        }
    }
    if (!known.work) return {};
    if (!known.timed) known.work->ms = ms_(known.node, nest) + (known.restoring ? ms_(*known.restoring, nest) : 0), known.timed = true;
    LayerWork work = *known.work;
    known.site.name = site;
    work.points = loss_.width_points(known.site);
    work.variance = variance_of(known.node, steps_.at(site));
    return work;
}

void SiteCosts::forget_times() {
    for (auto& [nest, known] : known_) known.timed = false;
}

}  // namespace loopegg
