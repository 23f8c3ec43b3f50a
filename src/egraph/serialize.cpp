#include "egraph/serialize.hpp"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json.hpp"

namespace loopegg {
namespace {

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

std::string escaped_label(const std::string& text) {
    std::string out;
    for (char c : text) {
        if (std::string_view("\\\"{}|<> ").find(c) != std::string_view::npos) out += '\\';
        out += c;
    }
    return out;
}

}  // namespace

std::string write_egraph_json(const EGraph& graph, std::span<const ClassId> roots, const std::function<double(NodeId)>& cost) {
    std::string out = "{\"nodes\": {";
    bool first = true;
    for (ClassId c : graph.classes()) {
        const auto nodes = graph.nodes(c);
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            const NodeView node = graph.node(nodes[i]);
            out += fmt::format("{}\n\"{}.{}\": {{\"op\": {}, \"children\": [", first ? "" : ",", c, i, quoted(node.op.text()));
            for (std::size_t k = 0; k < node.children.size(); ++k) out += fmt::format("{}\"{}.0\"", k ? ", " : "", graph.find(node.children[k]));
            out += fmt::format("], \"eclass\": \"{}\", \"cost\": {}}}", c, cost ? cost(nodes[i]) : 1.0);
            first = false;
        }
    }
    out += "\n}, \"root_eclasses\": [";
    for (std::size_t i = 0; i < roots.size(); ++i) out += fmt::format("{}\"{}\"", i ? ", " : "", graph.find(roots[i]));
    return out + "]}\n";
}

ReadEGraph read_egraph_json(const SourcePtr& source, EGraph::Options options) {
    ReadEGraph out{EGraph(options), {}, {}};
    struct Node {
        Symbol op;
        std::string in;
        std::vector<std::uint32_t> children;  // nodes
    };
    const JsonView file = read_json(source);
    const auto members = file.at("nodes").members();
    std::unordered_map<std::string, std::uint32_t> number;
    for (const auto& [name, view] : members) number.emplace(name, static_cast<std::uint32_t>(number.size()));
    std::vector<Node> nodes;
    for (const auto& [name, view] : members) {
        Node& node = nodes.emplace_back();
        node.op = Symbol(view.at("op").text());
        node.in = view.at("eclass").text();
        for (const JsonView& child : view.at("children").items()) {
            const auto it = number.find(child.text());
            if (it == number.end()) child.fail("'" + child.text() + "' is no node of this e-graph");
            node.children.push_back(it->second);
        }
    }
    // A node can be added once each of its children's classes has a first node: those that wait are tried again.
    std::vector<std::uint32_t> waiting(nodes.size());
    for (std::uint32_t i = 0; i < waiting.size(); ++i) waiting[i] = i;
    while (!waiting.empty()) {
        std::vector<std::uint32_t> still;
        for (std::uint32_t i : waiting) {
            std::vector<ClassId> children;
            for (std::uint32_t k : nodes[i].children)
                if (const auto it = out.classes.find(nodes[k].in); it != out.classes.end()) children.push_back(it->second);
            if (children.size() != nodes[i].children.size()) {
                still.push_back(i);
                continue;
            }
            const ClassId c = out.graph.add(nodes[i].op, children);
            const auto [it, first] = out.classes.try_emplace(nodes[i].in, c);
            if (!first) out.graph.merge(it->second, c, "read from " + source->name);
        }
        if (still.size() == waiting.size())
            file.at("nodes")
                .at(members[still[0]].first)
                .fail("class '" + nodes[still[0]].in + "' holds no finite term: each of its nodes needs the class itself");
        waiting.swap(still);
    }
    out.graph.rebuild();
    for (auto& [name, c] : out.classes) c = out.graph.find(c);
    if (const auto roots = file.find("root_eclasses"))
        for (const JsonView& root : roots->items()) {
            const auto it = out.classes.find(root.text());
            if (it == out.classes.end()) root.fail("'" + root.text() + "' is no class of this e-graph");
            out.roots.push_back(it->second);
        }
    return out;
}

std::string write_egraph_dot(const EGraph& graph, std::size_t most) {
    if (graph.node_count() > most) throw UserError(fmt::format("an e-graph of {} nodes is too large to draw; at most {}", graph.node_count(), most));
    std::string out = "digraph egraph {\n  compound=true; node [shape=record, height=0.3]; edge [arrowsize=0.6];\n";
    std::string edges;
    for (ClassId c : graph.classes()) {
        out += fmt::format("  subgraph cluster_{0} {{ style=dashed; label=\"{0}\";\n", c);
        for (NodeId n : graph.nodes(c)) {
            const NodeView node = graph.node(n);
            out += fmt::format("    n{} [label=\"{}\"];\n", n, escaped_label(node.op.text()));
            for (std::size_t k = 0; k < node.children.size(); ++k) {
                const ClassId child = graph.find(node.children[k]);
                edges += fmt::format("  n{} -> n{} [label=\"{}\"{}];\n", n, graph.nodes(child)[0], node.children.size() > 1 ? std::to_string(k) : "",
                                     child == c ? "" : fmt::format(", lhead=cluster_{}", child));
            }
        }
        out += "  }\n";
    }
    for (const Edge& e : graph.edges())
        edges += fmt::format("  n{} -> n{} [style=bold, label=\"{}\", ltail=cluster_{}, lhead=cluster_{}];\n", graph.nodes(graph.find(e.from))[0],
                             graph.nodes(graph.find(e.to))[0], escaped_label(e.rule.text()), graph.find(e.from), graph.find(e.to));
    return out + edges + "}\n";
}

}  // namespace loopegg
