#include "graph/dot.hpp"

#include <fmt/format.h>

#include "graph/operators.hpp"

namespace loopegg {
namespace {

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (char c : text) out += c == '"' || c == '\\' ? std::string{'\\', c} : c == '\n' ? std::string("\\n") : std::string{c};
    return out + "\"";
}

}  // namespace

std::string to_dot(const Graph& graph) {
    std::string out = fmt::format("digraph {} {{\n  node [shape=box, fontname=\"sans-serif\", fontsize=10];\n", quoted(graph.name));
    for (const GraphInput& input : graph.inputs) out += fmt::format("  {} [shape=ellipse, label={}];\n", quoted(input.name), quoted(input.name + "\n" + to_string(input.shape)));
    for (const Node& node : graph.nodes) {
        std::string label = node.name + "\n" + node.op + " " + to_string(node.shape);
        const char* look = !node.domain.whole() ? ", style=filled, fillcolor=\"#ffd9a0\"" : is_site(node) ? ", style=filled, fillcolor=\"#d6e8ff\"" : "";
        out += fmt::format("  {} [label={}{}];\n", quoted(node.name), quoted(label), look);
        for (const std::string& input : node.inputs) out += fmt::format("  {} -> {};\n", quoted(input), quoted(node.name));
    }
    return out + "}\n";
}

}  // namespace loopegg
