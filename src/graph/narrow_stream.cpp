#include "graph/narrow_stream.hpp"

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "graph/operators.hpp"

namespace loopegg {
namespace {

class Widths {
public:
    Widths(const Streams& streams, const std::map<std::size_t, std::int64_t>& widths) : streams_(streams), widths_(widths) {}

    bool changes(const std::string& value) const {
        const auto it = streams_.of.find(value);
        return it != streams_.of.end() && std::any_of(it->second.streams.begin(), it->second.streams.end(), [&](std::size_t s) { return widths_.contains(s); });
    }
    std::size_t axis(const std::string& value) const { return streams_.of.at(value).axis; }
    std::int64_t channels(const std::string& value) const {
        std::int64_t sum = 0;
        for (std::size_t s : streams_.of.at(value).streams) {
            const auto narrower = widths_.find(s);
            sum += narrower == widths_.end() ? streams_.all[s].width : narrower->second;
        }
        return sum;
    }
    std::int64_t extent(const std::string& value) const { return channels(value) * streams_.of.at(value).places; }
    bool gone(const std::string& value) const { return changes(value) && channels(value) == 0; }

private:
    const Streams& streams_;
    const std::map<std::size_t, std::int64_t>& widths_;
};

void narrow(Node& node, const Widths& widths) {
    if (node.op == "concat") std::erase_if(node.inputs, [&](const std::string& input) { return widths.gone(input); });
    if (!widths.changes(node.name)) return;
    if (node.op == "conv2d") {
        if (is_depthwise(node)) node.attrs["groups"] = widths.channels(node.name);
        node.attrs["out_channels"] = widths.channels(node.name);
    } else if (node.op == "linear") {
        node.attrs["out_features"] = widths.channels(node.name);
    } else if (node.op == "parameter" || node.op == "reshape") {
        Shape shape = node.integers("shape");
        std::int64_t& extent = shape[widths.axis(node.name)];
        if (extent > 0) extent = widths.extent(node.name);  // 0 and -1 follow by themselves
        node.attrs["shape"] = std::move(shape);
    }
}

}  // namespace

std::string width_refusal(const Stream& stream, std::int64_t width) {
    if (!stream.fixed.empty()) return stream.fixed;
    if (width < 0 || width > stream.width) return "of " + std::to_string(stream.width) + " channels, " + std::to_string(width) + " cannot be kept";
    if (width % stream.blocks != 0) return std::to_string(width) + " channels are not as many in each of " + std::to_string(stream.blocks) + " groups";
    return "";
}

Graph with_widths(Graph graph, const Streams& streams, const std::map<std::size_t, std::int64_t>& widths) {
    for (const auto& [s, width] : widths)
        if (std::string why = width_refusal(streams.all[s], width); !why.empty()) throw UserError(why);
    const Widths all(streams, widths);
    for (Node& node : graph.nodes) narrow(node, all);
    std::map<std::string, std::string> instead;  // of a concatenation of one value
    for (Node& node : graph.nodes) {
        for (std::string& input : node.inputs)
            if (const auto it = instead.find(input); it != instead.end()) input = it->second;
        const bool output = std::find(graph.outputs.begin(), graph.outputs.end(), node.name) != graph.outputs.end();
        if (node.op == "concat" && node.inputs.size() == 1 && !output) instead[node.name] = node.inputs[0];
    }
    graph = without_unread_nodes(std::move(graph));
    complete(graph);
    return graph;
}

Graph without_unread_nodes(Graph graph) {
    std::set<std::string> needed(graph.outputs.begin(), graph.outputs.end());
    for (std::size_t i = graph.nodes.size(); i-- > 0;)
        if (needed.contains(graph.nodes[i].name)) needed.insert(graph.nodes[i].inputs.begin(), graph.nodes[i].inputs.end());
    std::erase_if(graph.nodes, [&](const Node& node) { return !needed.contains(node.name); });
    return graph;
}

}  // namespace loopegg
