#include "graph/architecture.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "graph/operators.hpp"

namespace loopegg {
namespace {

// Counts of everything a class is recognised by.
struct Signs {
    int convolutions = 0, depthwise = 0, attentions = 0, linears = 0;
    int carried = 0;         // tensors that more than one concatenation along the channels holds
    int shortcuts = 0;       // additions of two tensors that both come from one earlier tensor
    std::set<Shape> scales;  // spatial extents of the outputs that are feature maps
};

std::int64_t integer_attr(const Node& node, const char* attr, std::int64_t otherwise) {
    auto it = node.attrs.find(attr);
    if (it == node.attrs.end()) return otherwise;
    const auto* value = std::get_if<std::int64_t>(&it->second);
    return value ? *value : otherwise;
}

bool is_depthwise(const Graph& graph, const Node& node) {
    const Shape& in = graph.shape_of(node.inputs[0]);
    std::int64_t groups = integer_attr(node, "groups", 1);
    return in.size() == 4 && groups > 1 && groups == in[1];
}

// Attention: a softmax over a product of two tensors, whose result is multiplied with a third.
bool feeds_from_matmul(const Graph& graph, const std::string& name, int steps) {
    const Node* node = graph.find(name);
    if (!node || steps == 0) return false;
    if (node->op == "matmul") return true;
    if (node->op != "scale" && node->op != "add" && node->op != "mul" && node->op != "reshape") return false;
    for (const std::string& in : node->inputs)
        if (feeds_from_matmul(graph, in, steps - 1)) return true;
    return false;
}

// The tensors a concatenation holds, looking through concatenations of concatenations.
std::set<std::string> pieces(const std::map<std::string, std::set<std::string>>& held, const Node& concat) {
    std::set<std::string> out;
    for (const std::string& in : concat.inputs) {
        auto it = held.find(in);
        if (it == held.end())
            out.insert(in);
        else
            out.insert(it->second.begin(), it->second.end());
    }
    return out;
}

// What a tensor is made from in the end: the network's inputs and parameters, one bit each. Two tensors come from one earlier tensor when these
// meet. In a chain all tensors share one set, so a long network takes no more than a short one for each of its nodes.
using Sources = std::shared_ptr<const std::vector<std::uint64_t>>;

Sources source(std::size_t number) {
    std::vector<std::uint64_t> bits(number / 64 + 1, 0);
    bits.back() = std::uint64_t{1} << number % 64;
    return std::make_shared<const std::vector<std::uint64_t>>(std::move(bits));
}

Sources joined(const Sources& a, const Sources& b) {
    if (!a || !b || a == b) return a ? a : b;
    const Sources& longer = a->size() < b->size() ? b : a;
    const Sources& shorter = a->size() < b->size() ? a : b;
    std::vector<std::uint64_t> both = *longer;
    for (std::size_t i = 0; i < shorter->size(); ++i) both[i] |= (*shorter)[i];
    if (both == *longer) return longer;
    return std::make_shared<const std::vector<std::uint64_t>>(std::move(both));
}

bool meet(const Sources& a, const Sources& b) {
    if (!a || !b) return false;
    for (std::size_t i = 0; i < std::min(a->size(), b->size()); ++i)
        if ((*a)[i] & (*b)[i]) return true;
    return false;
}

Signs look(const Graph& graph) {
    Signs signs;
    std::map<std::string, std::set<std::string>> held;  // of each concatenation
    std::map<std::string, int> holders;
    std::map<std::string, Sources> sources;  // of every tensor
    for (const GraphInput& in : graph.inputs) sources[in.name] = source(sources.size());
    std::set<std::string> softmax_of_products;
    for (const Node& node : graph.nodes) {
        Sources above = node.inputs.empty() ? source(sources.size()) : sources[node.inputs[0]];
        for (std::size_t i = 1; i < node.inputs.size(); ++i) above = joined(above, sources[node.inputs[i]]);
        sources[node.name] = above;
        if (node.op == "conv2d")
            ++signs.convolutions, signs.depthwise += is_depthwise(graph, node);
        else if (node.op == "linear")
            ++signs.linears;
        else if (node.op == "softmax" && feeds_from_matmul(graph, node.inputs[0], 4))
            softmax_of_products.insert(node.name);
        else if (node.op == "matmul" && (softmax_of_products.contains(node.inputs[0]) || softmax_of_products.contains(node.inputs[1])))
            ++signs.attentions;
        else if (node.op == "concat" && integer_attr(node, "axis", 1) == 1 && node.shape.size() == 4) {
            for (const std::string& piece : held[node.name] = pieces(held, node)) signs.carried += ++holders[piece] == 2;
        } else if (node.op == "add") {
            signs.shortcuts += meet(sources[node.inputs[0]], sources[node.inputs[1]]);
        }
    }
    for (const std::string& name : graph.outputs)
        if (const Shape& shape = graph.shape_of(name); shape.size() == 4) signs.scales.insert({shape[2], shape[3]});
    return signs;
}

}  // namespace

const char* to_string(ArchitectureClass kind) { return architecture_class_names()[static_cast<std::size_t>(kind)].c_str(); }

const std::vector<std::string>& architecture_class_names() {
    static const std::vector<std::string> names{"plain", "residual", "mobile", "dense", "detection", "transformer"};
    return names;
}

std::optional<ArchitectureClass> architecture_class(std::string_view name) {
    const auto& names = architecture_class_names();
    for (std::size_t i = 0; i < names.size(); ++i)
        if (names[i] == name) return static_cast<ArchitectureClass>(i);
    return std::nullopt;
}

Architecture classify_architecture(const Graph& graph) {
    using enum ArchitectureClass;
    const Signs s = look(graph);
    if (s.attentions > 0)
        return {transformer, fmt::format("{} times a softmax of a matrix product is multiplied with a third tensor: attention", s.attentions)};
    if (s.scales.size() >= 2) return {detection, fmt::format("its outputs are feature maps at {} scales", s.scales.size())};
    if (s.depthwise * 4 >= s.convolutions && s.depthwise > 0) return {mobile, fmt::format("{} of {} convolutions are depthwise", s.depthwise, s.convolutions)};
    if (s.carried > s.shortcuts && s.carried >= 2) return {dense, fmt::format("{} tensors are carried along by more than one concatenation", s.carried)};
    if (s.shortcuts > 0) return {residual, fmt::format("{} additions join a tensor with one that it was made from", s.shortcuts)};
    return {plain,
            fmt::format("no attention, no depthwise convolution, no shortcut: {} convolutions and {} linear layers in a chain", s.convolutions, s.linears)};
}

namespace {

void add(Hasher& hasher, const std::vector<std::int64_t>& values) {
    hasher.add(static_cast<std::uint64_t>(values.size()));
    for (std::int64_t v : values) hasher.add(v);
}

void add(Hasher& hasher, const Attr& attr) {
    hasher.add(static_cast<std::uint64_t>(attr.index()));
    if (const auto* integer = std::get_if<std::int64_t>(&attr)) hasher.add(*integer);
    if (const auto* real = std::get_if<double>(&attr)) hasher.add(*real);
    if (const auto* flag = std::get_if<bool>(&attr)) hasher.add(static_cast<int>(*flag));
    if (const auto* text = std::get_if<std::string>(&attr)) hasher.add(std::string_view(*text));
    if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&attr)) add(hasher, *integers);
}

Hash128 site_hash(const Node& site) {
    Hasher hasher;
    hasher.add(std::string_view(site.op)).add(std::string_view(to_string(site.domain)));
    for (const auto& [name, value] : site.attrs)
        if (name != "bias") hasher.add(std::string_view(name)), add(hasher, value);
    for (const Parameter& p : parameters_of(site))
        if (p.shape.size() > 1) add(hasher, p.shape);
    return hasher.finish();
}

}  // namespace

Hash128 architecture_hash(const Graph& graph) {
    std::vector<Hash128> sites;
    for (const Node& node : graph.nodes)
        if (is_site(node)) sites.push_back(site_hash(node));
    std::sort(sites.begin(), sites.end());
    Hasher hasher;
    for (const Hash128& site : sites) hasher.add(site);
    return hasher.finish();
}

}  // namespace loopegg
