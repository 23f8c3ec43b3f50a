#include "graph/hidden_widths.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/error.hpp"
#include "graph/domain_sets.hpp"
#include "graph/functions.hpp"
#include "graph/operators.hpp"

namespace loopegg {
namespace {

// With groups a channel is two axes, and its readers and writers do not correspond one for one.
bool has_plain_channels(const Node& node) { return node.op == "linear" || (node.op == "conv2d" && node.integer("groups") == 1); }

// By value: the only node that reads it; nothing where there are several or where it leaves the network.
std::map<std::string, const Node*> only_readers(const Graph& graph) {
    std::map<std::string, const Node*> readers;
    for (const Node& node : graph.nodes)
        for (const std::string& input : node.inputs)
            if (auto [it, first] = readers.emplace(input, &node); !first) it->second = nullptr;
    for (const std::string& output : graph.outputs) readers[output] = nullptr;
    return readers;
}

// The channels that a node reads, as the outputs of the one that writes them; nothing where it reads all or ranges cannot say them.
std::optional<Domain> as_outputs(const Node& reader) {
    if (reader.domain.parts.size() != 1) return {};
    Domain outputs{{DomainPart{}}, Restore::zero};
    for (DigitRange r : reader.domain.parts[0].ranges)
        if (r.digit.axis == "ci" && r.hi - r.lo < r.digit.radix) r.digit.axis = "co", outputs.parts[0].ranges.push_back(r);
    const auto& pairs = reader.domain.parts[0].diagonals;
    const bool tied = std::any_of(pairs.begin(), pairs.end(), [](const DigitPair& d) { return d.first.axis == "ci" || d.second.axis == "ci"; });
    return tied || outputs.parts[0].ranges.empty() ? std::nullopt : std::optional(outputs);
}

}  // namespace

bool keeps_channels_apart(const std::string& op) {
    static constexpr std::array<std::string_view, 4> ops{"batch_norm", "scale", "max_pool", "avg_pool"};
    const ElementFunction* f = find_function(op);
    return std::find(ops.begin(), ops.end(), op) != ops.end() || (f && f->operands == 1);
}

std::vector<HiddenWidth> hidden_widths(const Graph& graph) {
    const std::map<std::string, const Node*> readers = only_readers(graph);
    auto reader_of = [&](const std::string& value) {
        const auto it = readers.find(value);
        return it == readers.end() ? nullptr : it->second;
    };
    std::vector<HiddenWidth> out;
    for (const Node& writer : graph.nodes) {
        if (!has_plain_channels(writer)) continue;
        const Node* reader = reader_of(writer.name);
        while (reader && keeps_channels_apart(reader->op)) reader = reader_of(reader->name);
        if (reader && reader->op == writer.op && has_plain_channels(*reader)) out.push_back({writer.name, reader->name});
    }
    return out;
}

bool leaves_out_channels(const Domain& domain) {
    if (domain.parts.size() != 1 || domain.restore == Restore::none || !domain.parts[0].diagonals.empty()) return false;
    const auto& ranges = domain.parts[0].ranges;
    return std::all_of(ranges.begin(), ranges.end(), [](const DigitRange& r) { return r.digit.axis == "co"; });
}

bool reads_only_computed(const Domain& writer, const std::vector<Axis>& writer_axes, const Domain& reader, const std::vector<Axis>& reader_axes) {
    const std::vector<char> computed = projection(writer, writer_axes, {"co"}), read = projection(reader, reader_axes, {"ci"});
    if (computed.size() != read.size()) return false;
    for (std::size_t c = 0; c < read.size(); ++c)
        if (read[c] && !computed[c]) return false;
    return true;
}

Graph without_unread_outputs(Graph graph) {
    for (const HiddenWidth& h : hidden_widths(graph)) {
        Node& writer = *graph.find(h.writer);
        const Node& reader = *graph.find(h.reader);
        const std::optional<Domain> read = as_outputs(reader);
        if (!read || !(writer.domain.whole() || leaves_out_channels(writer.domain))) continue;
        if (reads_only_computed(writer.domain, axes_of(writer), reader.domain, axes_of(reader))) writer.domain = *read;
    }
    return graph;
}

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
