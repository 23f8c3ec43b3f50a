#include "graph/flops.hpp"

#include <algorithm>

#include "graph/domain_sets.hpp"
#include "graph/operators.hpp"

namespace loopegg {

std::int64_t parameters(const Node& node) {
    std::int64_t count = 0;
    if (!node.domain.whole() && node.op != "matmul") {
        std::vector<char> weight = weight_mask(node), bias = bias_mask(node);
        return std::count(weight.begin(), weight.end(), 1) + std::count(bias.begin(), bias.end(), 1);
    }
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

std::vector<char> weight_mask(const Node& node) {
    // The weight's layout is these axes in this order.
    return projection(node.domain, axes_of(node), node.op == "conv2d" ? std::vector<std::string>{"g", "co", "ci", "kh", "kw"} : std::vector<std::string>{"co", "ci"});
}

std::vector<char> bias_mask(const Node& node) {
    if (!node.flag("bias")) return {};
    return projection(node.domain, axes_of(node), node.op == "conv2d" ? std::vector<std::string>{"g", "co"} : std::vector<std::string>{"co"});
}

}  // namespace loopegg
