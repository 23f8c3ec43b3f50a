#include "graph/graph.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace loopegg {
namespace {

template <class T>
const T& attribute(const Node& node, std::string_view name) {
    auto found = node.attrs.find(std::string(name));
    const T* value = found == node.attrs.end() ? nullptr : std::get_if<T>(&found->second);
    if (!value) throw InternalFault(fmt::format("node '{}' ({}) has no attribute '{}' of the requested kind", node.name, node.op, name));
    return *value;
}

}  // namespace

std::int64_t Node::integer(std::string_view attr) const { return attribute<std::int64_t>(*this, attr); }
double Node::real(std::string_view attr) const { return attribute<double>(*this, attr); }
bool Node::flag(std::string_view attr) const { return attribute<bool>(*this, attr); }
const std::string& Node::text(std::string_view attr) const { return attribute<std::string>(*this, attr); }
const std::vector<std::int64_t>& Node::integers(std::string_view attr) const { return attribute<std::vector<std::int64_t>>(*this, attr); }

bool operator==(const Node& a, const Node& b) {
    return a.name == b.name && a.op == b.op && a.inputs == b.inputs && a.attrs == b.attrs && a.domain == b.domain && a.shape == b.shape;
}

const Node* Graph::find(std::string_view wanted) const {
    for (const Node& node : nodes)
        if (node.name == wanted) return &node;
    return nullptr;
}

Node* Graph::find(std::string_view wanted) { return const_cast<Node*>(std::as_const(*this).find(wanted)); }

const Shape& Graph::shape_of(std::string_view wanted) const {
    for (const GraphInput& input : inputs)
        if (input.name == wanted) return input.shape;
    const Node* node = find(wanted);
    if (!node) throw InternalFault(fmt::format("no node or input '{}' in graph '{}'", wanted, name));
    return node->shape;
}

namespace {

// A value that depends on an input belongs to its images, so it grows as the batch does. One that does not has the batch written into it.
void check_growth(const Graph& before, const Graph& after) {
    std::unordered_map<std::string_view, const Shape*> was;
    for (const Node& node : before.nodes) was[node.name] = &node.shape;
    std::unordered_set<std::string_view> growing;
    for (std::size_t i = 0; i < after.inputs.size(); ++i)
        if (after.inputs[i].shape != before.inputs[i].shape) growing.insert(after.inputs[i].name);
    const std::int64_t from = before.inputs[0].shape[0], to = after.inputs[0].shape[0];
    for (const Node& node : after.nodes) {
        if (std::none_of(node.inputs.begin(), node.inputs.end(), [&](const std::string& name) { return growing.contains(name); })) continue;
        growing.insert(node.name);
        const Shape& own = *was.at(node.name);
        if (element_count(own) * to != element_count(node.shape) * from)
            throw UserError(
                fmt::format("node '{}' is {} for a batch of {} and {} for a batch of {}", node.name, to_string(own), from, to_string(node.shape), to));
    }
}

}  // namespace

Graph with_batch(Graph graph, std::int64_t batch) {
    const Shape first = graph.inputs.at(0).shape;
    if (first.empty()) throw UserError(fmt::format("the input '{}' has no batch dimension", graph.inputs[0].name));
    const Graph own = graph;
    for (GraphInput& input : graph.inputs)
        if (!input.shape.empty() && input.shape[0] == first[0]) input.shape[0] = batch;
    try {
        complete(graph);
        check_growth(own, graph);
    } catch (const UserError& e) {
        if (batch == first[0]) throw;
        throw UserError(
            Diagnostic{fmt::format("'{}' is made for a batch of {} and cannot take {}: {}", own.name, first[0], batch, e.diagnostics().at(0).message),
                       e.diagnostics().at(0).where,
                       fmt::format("'--batch {}' takes the network as it is; a file that is exported with an open batch takes any", first[0])});
    }
    return graph;
}

std::int64_t element_count(const Shape& shape) {
    std::int64_t count = 1;
    for (std::int64_t d : shape)
        if (__builtin_mul_overflow(count, d, &count)) throw InternalFault("the elements of an unchecked shape overflow");
    return count;
}

std::string to_string(const Shape& shape) {
    std::string text;
    for (std::int64_t d : shape) text += (text.empty() ? "" : "x") + std::to_string(d);
    return text.empty() ? "a scalar" : text;
}

}  // namespace loopegg
