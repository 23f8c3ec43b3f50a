// Fewer output channels that come back through the network's own operators.
#include <algorithm>

#include "base/error.hpp"
#include "graph/hidden_widths.hpp"
#include "graph/operators.hpp"
#include "nest/plan/apply_plan.hpp"
#include "nest/plan/site_form.hpp"

namespace loopegg {
namespace {

void expect_free_channels(const Node& node) {
    for (const DomainPart& part : node.domain.parts) {
        for (const DigitRange& r : part.ranges)
            if (r.digit.axis == "co") throw Refusal("the output channels of '" + node.name + "' are restricted already");
        for (const DigitPair& d : part.diagonals)
            if (d.first.axis == "co" || d.second.axis == "co") throw Refusal("the output channels of '" + node.name + "' are restricted already");
    }
}

// Divides a node's output channels; what is left is the first of each group.
void narrow(Node& node, std::int64_t factor) {
    const char* attr = node.op == "linear" ? "out_features" : "out_channels";
    std::int64_t groups = node.op == "conv2d" ? node.integer("groups") : 1, channels = node.integer(attr);
    if (channels / groups % factor != 0) throw Refusal("a factor of " + std::to_string(factor) + " does not divide the " + std::to_string(channels / groups) + " output channels" + (groups > 1 ? " of a group" : ""));
    node.attrs[attr] = channels / factor;
}

void expect_channels(const Node& node) {
    if (node.op != "conv2d" && node.op != "linear") throw Refusal("'" + node.op + "' has no output channels to keep a part of");
    expect_free_channels(node);
}

std::string fresh_name(const Graph& graph, const std::string& base) {
    std::string name = base;
    for (int i = 2; graph.find(name) != nullptr; ++i) name = base + std::to_string(i);
    return name;
}

// A pooled or flattened channel is still that channel to the linear layer that reads it.
bool keeps_channels(const std::string& op) { return keeps_channels_apart(op) || op == "global_avg_pool" || op == "flatten"; }

}  // namespace

void restore_pointwise(Graph& graph, const std::string& site, std::int64_t factor) {
    std::size_t at = static_cast<std::size_t>(std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& n) { return n.name == site; }) - graph.nodes.begin());
    Node& node = graph.nodes[at];
    expect_channels(node);
    bool linear = node.op == "linear";
    std::int64_t channels = node.integer(linear ? "out_features" : "out_channels");
    narrow(node, factor);
    Node wide;
    wide.name = fresh_name(graph, site + ".restore");
    wide.op = node.op;
    wide.inputs = {site};
    wide.attrs["bias"] = false;
    if (linear) wide.attrs["out_features"] = channels;
    else wide.attrs["out_channels"] = channels, wide.attrs["kernel"] = std::vector<std::int64_t>{1, 1};
    for (Node& other : graph.nodes)
        if (other.name != site)
            for (std::string& input : other.inputs)
                if (input == site) input = wide.name;
    for (std::string& output : graph.outputs)
        if (output == site) output = wide.name;
    graph.nodes.insert(graph.nodes.begin() + static_cast<std::ptrdiff_t>(at) + 1, std::move(wide));
}

void restore_propagate(Graph& graph, const std::string& site, std::int64_t factor) {
    Graph before = graph;
    try {
        Node& node = *graph.find(site);
        expect_channels(node);
        if (node.op == "conv2d" && node.integer("groups") > 1 && node.integer("groups") != node.shape[1])
            throw Refusal("'" + site + "' is grouped: the channels that its readers would lose lie in every group");
        narrow(node, factor);
        std::vector<std::string> fewer{site};
        for (std::size_t i = 0; i < fewer.size(); ++i) {
            if (std::find(graph.outputs.begin(), graph.outputs.end(), fewer[i]) != graph.outputs.end()) throw Refusal("'" + fewer[i] + "' is an output of the network: its channels must stay");
            for (Node& reader : graph.nodes) {
                if (std::find(reader.inputs.begin(), reader.inputs.end(), fewer[i]) == reader.inputs.end()) continue;
                if (std::find(fewer.begin(), fewer.end(), reader.name) != fewer.end()) continue;
                for (const DomainPart& part : reader.domain.parts)
                    if (!part.ranges.empty() || !part.diagonals.empty()) throw Refusal("'" + reader.name + "' reads these channels and is restricted already");
                if (reader.op == "conv2d") {
                    std::int64_t groups = reader.integer("groups");
                    if (groups == 1) continue;
                    if (groups != reader.input_shapes[0][1] || groups % factor != 0) throw Refusal("'" + reader.name + "' reads these channels in " + std::to_string(groups) + " groups");
                    reader.attrs["groups"] = groups / factor;
                    reader.attrs["out_channels"] = reader.integer("out_channels") / factor;
                    fewer.push_back(reader.name);
                } else if (reader.op == "linear") {
                    continue;
                } else if (keeps_channels(reader.op)) {
                    fewer.push_back(reader.name);
                } else if (reader.op == "add" || reader.op == "mul") {
                    throw Refusal("'" + reader.name + "' adds these channels to others: a residual " + reader.op + " needs all of them");
                } else if (reader.op == "concat") {
                    throw Refusal("'" + reader.name + "' joins these channels with others: the readers of a concat count on all of them");
                } else {
                    throw Refusal("'" + reader.name + "' (" + reader.op + ") needs all of these channels");
                }
            }
        }
    } catch (...) {
        graph = std::move(before);
        throw;
    }
}

}  // namespace loopegg
