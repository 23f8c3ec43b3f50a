#include "extract/serialized.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/quote.hpp"
#include "base/text.hpp"

namespace loopegg {
namespace {

// Collects complaints, so that a person can fix all mistakes of a file at once.
class Reader {
public:
    SerializedEGraph read(const JsonView& root) {
        const auto nodes = root.at("nodes").members();
        if (nodes.empty()) root.at("nodes").fail("there are no nodes to extract from");
        for (const auto& [id, node] : nodes) attempt([&] { declare(id, node); });
        for (const auto& [id, node] : nodes) attempt([&] { connect(id, node); });
        attempt([&] { read_roots(root.at("root_eclasses")); });
        if (!complaints_.empty()) throw UserError(std::move(complaints_));
        return std::move(egraph_);
    }

private:
    template <class F>
    void attempt(F step) {
        if (complaints_.size() >= 20) return;
        try {
            step();
        } catch (const UserError& e) {
            complaints_.insert(complaints_.end(), e.diagnostics().begin(), e.diagnostics().end());
        }
    }

    void declare(const std::string& id, const JsonView& node) {
        const std::string& name = node.at("eclass").text();
        auto [it, fresh] = classes_.try_emplace(name, no_index);
        if (fresh) it->second = egraph_.add_class(name);
        nodes_.emplace(id, egraph_.add_node(it->second, node.at("op").text(), {}, 1, id));
        if (auto cost = node.find("cost")) egraph_.nodes.back().cost = read_cost(*cost);
    }

    static double read_cost(const JsonView& view) {
        if (!view.value().is_number()) view.fail(fmt::format("a cost must be a number that is not negative, not {}", view.kind()));
        const double cost = view.number();
        if (!std::isfinite(cost)) view.fail("a cost must be finite");
        if (cost < 0) view.fail(fmt::format("a cost must not be negative, but this one is {}", cost));
        return cost;
    }

    void connect(const std::string& id, const JsonView& node) {
        const auto self = nodes_.find(id);
        if (self == nodes_.end()) return;  // the node's own mistake was reported already
        auto children = node.find("children");
        if (!children) return;
        for (const JsonView& child : children->items()) {
            const auto it = nodes_.find(child.text());
            if (it == nodes_.end()) child.fail(fmt::format("child '{}' is no node of this e-graph", child.text()), near(child.text(), nodes_));
            egraph_.nodes[self->second].children.push_back(egraph_.nodes[it->second].eclass);
        }
    }

    void read_roots(const JsonView& roots) {
        for (const JsonView& root : roots.items()) {
            const auto it = classes_.find(root.text());
            if (it == classes_.end()) root.fail(fmt::format("root '{}' is no class of this e-graph", root.text()), near(root.text(), classes_));
            if (std::find(egraph_.roots.begin(), egraph_.roots.end(), it->second) == egraph_.roots.end()) egraph_.roots.push_back(it->second);
        }
        if (egraph_.roots.empty()) roots.fail("there is no root to extract");
    }

    template <class Map>
    static std::string near(const std::string& typed, const Map& known) {
        std::vector<std::string> names;
        for (const auto& entry : known) names.push_back(entry.first);
        std::sort(names.begin(), names.end());
        return did_you_mean(typed, names);
    }

    SerializedEGraph egraph_;
    std::unordered_map<std::string, NodeIndex> nodes_;
    std::unordered_map<std::string, ClassIndex> classes_;
    std::vector<Diagnostic> complaints_;
};

}  // namespace

ClassIndex SerializedEGraph::add_class(std::string id) {
    classes.push_back({std::move(id), {}});
    return static_cast<ClassIndex>(classes.size() - 1);
}

NodeIndex SerializedEGraph::add_node(ClassIndex eclass, std::string op, std::vector<ClassIndex> children, double cost, std::string id) {
    const auto index = static_cast<NodeIndex>(nodes.size());
    if (id.empty()) id = fmt::format("{}.{}", classes.at(eclass).id, classes[eclass].nodes.size());
    nodes.push_back({std::move(id), std::move(op), std::move(children), eclass, cost});
    classes.at(eclass).nodes.push_back(index);
    return index;
}

SerializedEGraph read_serialized(const SourcePtr& source) { return Reader().read(read_json(source)); }

std::string to_json(const SerializedEGraph& egraph) {
    nlohmann::json nodes = nlohmann::json::object(), roots = nlohmann::json::array();
    for (const SerializedNode& n : egraph.nodes) {
        nlohmann::json children = nlohmann::json::array();
        for (ClassIndex c : n.children) children.push_back(egraph.nodes[egraph.classes[c].nodes.front()].id);
        nodes[n.id] = {{"op", n.op}, {"children", std::move(children)}, {"eclass", egraph.classes[n.eclass].id}, {"cost", n.cost}};
    }
    for (ClassIndex c : egraph.roots) roots.push_back(egraph.classes[c].id);
    return nlohmann::json{{"nodes", std::move(nodes)}, {"root_eclasses", std::move(roots)}}.dump(1) + "\n";
}

std::string to_dot(const SerializedEGraph& egraph, std::size_t most) {
    if (egraph.nodes.size() > most) throw UserError(fmt::format("a picture of {} nodes cannot be read by anybody; the most is {}", egraph.nodes.size(), most));
    std::string out = "digraph egraph {\n  compound=true;\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n";
    for (ClassIndex c = 0; c < egraph.classes.size(); ++c) {
        const bool root = std::find(egraph.roots.begin(), egraph.roots.end(), c) != egraph.roots.end();
        out += fmt::format("  subgraph cluster_{} {{\n    style={}; label={};\n", c, root ? "bold" : "dotted", dot_string(egraph.classes[c].id));
        for (NodeIndex n : egraph.classes[c].nodes) out += fmt::format("    n{} [label={}];\n", n, dot_string(egraph.nodes[n].op));
        out += "  }\n";
    }
    for (NodeIndex n = 0; n < egraph.nodes.size(); ++n)
        for (ClassIndex child : egraph.nodes[n].children)
            out += fmt::format("  n{} -> n{} [lhead=cluster_{}];\n", n, egraph.classes[child].nodes.front(), child);
    return out + "}\n";
}

}  // namespace loopegg
