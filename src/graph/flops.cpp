#include "graph/flops.hpp"

#include <algorithm>
#include <map>

#include "graph/domain_sets.hpp"
#include "graph/operators.hpp"

namespace loopegg {
namespace {

// The axes of a site's weight and bias, in the order of their layouts.
std::vector<std::string> weight_axes(const Node& node) {
    return node.op == "conv2d" ? std::vector<std::string>{"g", "co", "ci", "kh", "kw"} : std::vector<std::string>{"co", "ci"};
}
std::vector<std::string> bias_axes(const Node& node) { return node.op == "conv2d" ? std::vector<std::string>{"g", "co"} : std::vector<std::string>{"co"}; }

}  // namespace

std::int64_t parameters(const Node& node) {
    if (!node.domain.whole() && node.op != "matmul") {
        const std::vector<Axis> axes = axes_of(node);
        return projected_count(node.domain, axes, weight_axes(node)) + (node.flag("bias") ? projected_count(node.domain, axes, bias_axes(node)) : 0);
    }
    std::int64_t count = 0;
    for (const Parameter& p : parameters_of(node))
        if (p.trained) count += element_count(p.shape);
    return count;
}

std::int64_t macs(const Node& node) { return is_site(node) ? instance_count(node.domain, axes_of(node)) : 0; }

std::int64_t parameters(const Graph& graph) {
    std::int64_t count = 0;
    for (const Node& node : graph.nodes) count += parameters(node);
    return count;
}

std::int64_t macs(const Graph& graph) {
    std::int64_t count = 0;
    for (const Node& node : graph.nodes) count += macs(node);
    return count;
}

std::int64_t peak_activation_bytes(const Graph& graph) {
    std::map<std::string, std::size_t> last_reader;  // value -> the node that reads it last
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
        for (const std::string& input : graph.nodes[i].inputs) last_reader[input] = i;
    for (const std::string& output : graph.outputs) last_reader[output] = graph.nodes.size();
    std::int64_t kept = 0, peak = 0;
    for (const GraphInput& input : graph.inputs) kept += element_count(input.shape);
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        kept += element_count(graph.nodes[i].shape);
        peak = std::max(peak, kept);
        for (const auto& [value, reader] : last_reader)
            if (reader == i) kept -= element_count(graph.shape_of(value));
    }
    return 4 * peak;
}

std::vector<char> weight_mask(const Node& node) { return projection(node.domain, axes_of(node), weight_axes(node)); }

std::vector<char> bias_mask(const Node& node) {
    if (!node.flag("bias")) return {};
    return projection(node.domain, axes_of(node), bias_axes(node));
}

}  // namespace loopegg
