#include "nest/net/net.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "graph/hidden_widths.hpp"
#include "graph/normalise.hpp"
#include "graph/operators.hpp"
#include "graph/streams.hpp"
#include "nest/domain/domain.hpp"
#include "nest/domain/with_domain.hpp"
#include "nest/net/net_walk.hpp"
#include "nest/net/resize.hpp"
#include "nest/term/grammar.hpp"

namespace loopegg {
namespace {

bool plain(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-' || c == '/'; }

int hexadecimal(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

}  // namespace

std::span<const std::string_view> net_operators() {
    static constexpr std::array<std::string_view, 14> all{"layer",  "each",   "spread", "opaque", "same", "row",  "join",
                                                          "stream", "tangle", "none",   "write",  "read", "lack", "within"};
    return all;
}

bool is_net(const Term& term) { return std::find(net_operators().begin(), net_operators().end(), term.op().text()) != net_operators().end(); }

std::size_t net_parts(std::string_view op) {
    if (op == "row" || op == "join" || op == "stream" || op == "tangle") return 2;
    return op == "layer" || op == "each" || op == "spread" || op == "opaque" || op == "same" ? 0 : 1;
}

Term net_name(std::string_view node) {
    std::string text = "@";
    for (char c : node) text += plain(c) ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
    return Term(text);
}

std::string node_named(const Term& name) {
    const std::string& text = name.op().text();
    if (name.size() > 0 || !text.starts_with('@')) throw UserError("'" + to_string(name) + "' is not the name of a node: expected @NAME");
    std::string node;
    for (std::size_t i = 1; i < text.size(); ++i) {
        if (text[i] != '%' || i + 2 >= text.size() || hexadecimal(text[i + 1]) < 0 || hexadecimal(text[i + 2]) < 0) {
            node += text[i];
            continue;
        }
        node += static_cast<char>(hexadecimal(text[i + 1]) * 16 + hexadecimal(text[i + 2]));
        i += 2;
    }
    return node;
}

NetSite net_site(const Term& site) {
    const bool kept = site.is("kept", 1);
    return {node_named(kept ? site[0] : site), kept};
}

Term net_site(const NetSite& site) { return site.kept ? Term("kept", {net_name(site.name)}) : net_name(site.name); }

std::vector<std::int64_t> widths_offered(std::int64_t channels, std::int64_t least, std::int64_t parts, std::int64_t step) {
    constexpr std::int64_t max_parts = 1024;
    if (least < 1 || least >= parts || parts > max_parts) return {};
    if (parts > channels) least = (least * channels + parts - 1) / parts, parts = channels;  // every width from the least one on
    const std::int64_t block = std::max<std::int64_t>(step, channels >= 16 ? 4 : 1);
    std::vector<std::int64_t> out;
    for (std::int64_t k = least; k < parts; ++k)
        if (const std::int64_t w = channels * k / parts / block * block; w > 0 && w < channels && (out.empty() || out.back() < w)) out.push_back(w);
    return out;
}

namespace {

// Copies the nodes that a term names, each as it is in the original but for the values that it reads.
class Copier final : public NetVisitor {
public:
    explicit Copier(const Graph& original) : original_(original) {
        for (const GraphInput& input : original.inputs) depends_.insert(input.name);
        for (std::size_t i = 0; i < original.nodes.size(); ++i) {
            const Node& node = original.nodes[i];
            place_[node.name] = i;
            if (std::any_of(node.inputs.begin(), node.inputs.end(), [&](const std::string& v) { return depends_.contains(v); })) depends_.insert(node.name);
        }
    }

    std::string layer(const NetSite& site, const Term& nest, const NetValue& in) override {
        nests_.emplace_back(site.name, nest);
        return copy(site.name, {in.name});
    }
    std::string each(const std::string& node, const NetValue& in) override {
        const Node& original = known(node);
        const Node* before = copied_.contains(in.name) ? &known(in.name) : nullptr;
        // The rectifier of a rectified value changes nothing.
        if (before && before->op == original.op && (before->op == "relu" || before->op == "relu6") && !is_output(node)) return in.name;
        return copy(node, {in.name});
    }
    std::string add(const std::string& node, const std::vector<NetValue>& operands) override { return copy(node, in_order(known(node), names_of(operands))); }
    std::string concat(const std::string& node, const std::vector<NetValue>& operands) override {
        std::vector<std::string> values;
        for (const std::string& value : names_of(operands)) {
            const auto inner = concatenated_.find(value);
            const std::vector<std::string>& inputs = known(node).inputs;
            const bool shared = inner != concatenated_.end() && std::find(inputs.begin(), inputs.end(), value) == inputs.end();
            if (shared)  // the term shares what two concatenations begin with; the nodes each read all values
                values.insert(values.end(), inner->second.begin(), inner->second.end());
            else
                values.push_back(value);
        }
        concatenated_[node] = values;
        return copy(node, values);
    }
    std::string tangle(const std::string& from, const std::string& to, const std::vector<NetLayer>& inside, const NetValue& in) override {
        for (const NetLayer& l : inside) nests_.emplace_back(l.site, l.nest);
        if (to.empty()) {
            for (const Node& node : original_.nodes) copied_.emplace(node.name, node);
            return "";
        }
        return copy_between(to, from, in.name);
    }

    // The nodes in the order of the original, with the network's outputs.
    Graph finish(const std::string& output) {
        Graph graph = original_;
        graph.nodes.clear();
        for (auto& [name, node] : copied_) graph.nodes.push_back(node);
        std::sort(graph.nodes.begin(), graph.nodes.end(), [&](const Node& a, const Node& b) { return place_.at(a.name) < place_.at(b.name); });
        if (!output.empty()) graph.outputs = {output};
        complete(graph);
        return graph;
    }

    const std::vector<std::pair<std::string, Term>>& nests() const { return nests_; }

private:
    const Node& known(const std::string& name) const {
        if (const Node* node = original_.find(name)) return *node;
        throw UserError("the network has no node '" + name + "'");
    }

    bool is_output(const std::string& name) const { return std::find(original_.outputs.begin(), original_.outputs.end(), name) != original_.outputs.end(); }

    static std::vector<std::string> names_of(const std::vector<NetValue>& values) {
        std::vector<std::string> names;
        for (const NetValue& v : values) names.push_back(v.name);
        return names;
    }

    // The order of the node itself, where it reads the same values.
    static std::vector<std::string> in_order(const Node& node, std::vector<std::string> values) {
        const auto place = [&](const std::string& v) { return std::find(node.inputs.begin(), node.inputs.end(), v) - node.inputs.begin(); };
        std::stable_sort(values.begin(), values.end(), [&](const std::string& a, const std::string& b) { return place(a) < place(b); });
        return values;
    }

    // What a node reads in addition to the values of the term (parameters) is copied with it.
    std::string copy(const std::string& name, const std::vector<std::string>& values) {
        if (copied_.contains(name)) throw UserError("'" + name + "' is computed twice");
        Node node = known(name);
        std::vector<std::string> inputs;
        std::size_t next = 0;
        for (const std::string& input : node.inputs) {
            if (!depends_.contains(input)) {
                copy_constant(input);
                inputs.push_back(input);
            } else if (next < values.size()) {
                inputs.push_back(values[next++]);
            }
        }
        inputs.insert(inputs.end(), values.begin() + static_cast<std::ptrdiff_t>(next), values.end());
        node.inputs = std::move(inputs);
        copied_.emplace(name, std::move(node));
        return name;
    }

    void copy_constant(const std::string& name) {
        if (copied_.contains(name)) return;
        const Node& node = known(name);
        for (const std::string& input : node.inputs) copy_constant(input);
        copied_.emplace(name, node);
    }

    std::string copy_between(const std::string& to, const std::string& from, const std::string& value) {
        std::set<std::string> inside{to};
        for (std::size_t i = original_.nodes.size(); i-- > 0;) {
            const Node& node = original_.nodes[i];
            if (!inside.contains(node.name)) continue;
            for (const std::string& input : node.inputs)
                if (input != from && original_.find(input)) inside.insert(input);
        }
        for (const Node& node : original_.nodes) {
            if (!inside.contains(node.name)) continue;
            Node copied = node;
            for (std::string& input : copied.inputs)
                if (input == from) input = value;
            copied_.emplace(node.name, std::move(copied));
        }
        return to;
    }

    const Graph& original_;
    std::set<std::string> depends_;  // values that depend on the network's inputs
    std::map<std::string, std::size_t> place_;
    std::map<std::string, Node> copied_;
    std::map<std::string, std::vector<std::string>> concatenated_;
    std::vector<std::pair<std::string, Term>> nests_;
};

// The statement of a nest as it would be with the whole domain, to compare sizes.
Term statement_term(const Term& nest) { return nest_parts(nest).statement; }

// The width of each stream by the sites that write it.
std::map<std::size_t, std::int64_t> widths_of(const Graph& graph, const Streams& streams, const std::vector<std::pair<std::string, Term>>& nests) {
    std::map<std::size_t, std::int64_t> widths;
    for (const auto& [site, nest] : nests) {
        const auto stream = streams.written_by(site);
        if (!stream) continue;
        const std::int64_t channels = output_channels(statement_of(statement_term(nest)));
        const auto [known, fresh] = widths.try_emplace(*stream, channels);
        if (!fresh && known->second != channels)
            throw UserError(fmt::format("'{}' writes {} channels of a stream of '{}' that others write {} of", site, channels, graph.name, known->second));
    }
    std::erase_if(widths, [&](const auto& w) { return w.second == 0 || w.second == streams.all[w.first].width; });
    return widths;
}

}  // namespace

Graph graph_of(const Term& net, const Graph& original) {
    Copier copier(original);
    const std::string input = original.inputs.size() == 1 ? original.inputs.front().name : "";
    const std::string output = walk_net(net, {input, {}}, copier).name;
    Graph graph = copier.finish(output);
    const Streams streams = streams_of(graph);
    if (const auto widths = widths_of(graph, streams, copier.nests()); !widths.empty()) graph = with_widths(std::move(graph), streams, widths);
    graph = without_unread_nodes(std::move(graph));
    std::vector<std::pair<std::string, Domain>> domains;
    for (const auto& [site, nest] : copier.nests()) {
        const Node* node = graph.find(site);
        if (!node) throw UserError("nothing reads '" + site + "'");
        Term own = channels_first(*node);
        if (!node->domain.whole() && own == nest) continue;
        if (statement_term(own) != statement_term(nest))
            throw UserError("'" + site + "' would be " + to_string(statement_term(own)) + " in the network, and is " + to_string(statement_term(nest)) +
                            " in its term");
        if (const Domain domain = domain_of(nest); !domain.whole()) domains.emplace_back(site, domain);
    }
    return normalise(domains.empty() ? std::move(graph) : with_domains(graph, domains));
}

}  // namespace loopegg
