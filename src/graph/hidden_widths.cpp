#include "graph/hidden_widths.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>

#include "graph/domain_sets.hpp"
#include "graph/functions.hpp"

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

}  // namespace loopegg
