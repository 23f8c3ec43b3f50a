// Sites with fewer output channels, where the network's own operators bring the channels back.
#include <algorithm>

#include "base/error.hpp"
#include "graph/hidden_widths.hpp"
#include "graph/operators.hpp"
#include "graph/streams.hpp"
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

// The node keeps the first `kept` output channels of each group.
void narrow(Node& node, std::int64_t kept) {
    const char* attr = node.op == "linear" ? "out_features" : "out_channels";
    const std::int64_t groups = node.op == "conv2d" ? node.integer("groups") : 1, channels = node.integer(attr);
    if (kept < 1 || kept * groups >= channels)
        throw Refusal("of " + std::to_string(channels / groups) + " output channels" + (groups > 1 ? " of a group" : "") + ", " + std::to_string(kept) +
                      " are no part");
    node.attrs[attr] = kept * groups;
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

}  // namespace

void restore_pointwise(Graph& graph, const std::string& site, std::int64_t kept) {
    std::size_t at =
        static_cast<std::size_t>(std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& n) { return n.name == site; }) - graph.nodes.begin());
    Node& node = graph.nodes[at];
    expect_channels(node);
    bool linear = node.op == "linear";
    std::int64_t channels = node.integer(linear ? "out_features" : "out_channels");
    narrow(node, kept);
    Node wide;
    wide.name = fresh_name(graph, site + ".restore");
    wide.op = node.op;
    wide.inputs = {site};
    wide.attrs["bias"] = false;
    if (linear)
        wide.attrs["out_features"] = channels;
    else
        wide.attrs["out_channels"] = channels, wide.attrs["kernel"] = std::vector<std::int64_t>{1, 1};
    for (Node& other : graph.nodes)
        if (other.name != site)
            for (std::string& input : other.inputs)
                if (input == site) input = wide.name;
    for (std::string& output : graph.outputs)
        if (output == site) output = wide.name;
    graph.nodes.insert(graph.nodes.begin() + static_cast<std::ptrdiff_t>(at) + 1, std::move(wide));
}

void restore_propagate(Graph& graph, const std::string& site, std::int64_t width) {
    const Streams streams = streams_of(graph);
    expect_channels(*graph.find(site));
    const auto stream = streams.written_by(site);
    if (!stream) throw Refusal("'" + site + "' has no channels of its own: they are those of what it reads");
    const Stream& s = streams.all[*stream];
    if (s.writers.size() > 1)
        throw Refusal("these channels are added to those of '" + (s.writers[0] == site ? s.writers[1] : s.writers[0]) +
                      "': a residual stream is narrowed by narrow-stream, for all its sites at once");
    if (width < 1 || width >= s.width) throw Refusal("of " + std::to_string(s.width) + " channels, " + std::to_string(width) + " are no part");
    if (std::string why = width_refusal(s, width); !why.empty()) throw Refusal(why);
    graph = with_widths(std::move(graph), streams, {{*stream, width}});
}

}  // namespace loopegg
