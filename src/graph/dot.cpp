#include "graph/dot.hpp"

#include <fmt/format.h>

#include "base/quote.hpp"
#include "graph/operators.hpp"

namespace loopegg {
std::string to_dot(const Graph& graph) {
    std::string out = fmt::format("digraph {} {{\n  node [shape=box, fontname=\"sans-serif\", fontsize=10];\n", dot_string(graph.name));
    for (const GraphInput& input : graph.inputs)
        out += fmt::format("  {} [shape=ellipse, label={}];\n", dot_string(input.name), dot_string(input.name + "\n" + to_string(input.shape)));
    for (const Node& node : graph.nodes) {
        std::string label = node.name + "\n" + node.op + " " + to_string(node.shape);
        const char* look = !node.domain.whole() ? ", style=filled, fillcolor=\"#ffd9a0\"" : is_site(node) ? ", style=filled, fillcolor=\"#d6e8ff\"" : "";
        out += fmt::format("  {} [label={}{}];\n", dot_string(node.name), dot_string(label), look);
        for (const std::string& input : node.inputs) out += fmt::format("  {} -> {};\n", dot_string(input), dot_string(node.name));
    }
    return out + "}\n";
}

}  // namespace loopegg
