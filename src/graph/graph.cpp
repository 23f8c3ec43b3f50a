#include "graph/graph.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace loopegg {
namespace {

template <class T> const T& attribute(const Node& node, std::string_view name) {
    auto found = node.attrs.find(std::string(name));
    const T* value = found == node.attrs.end() ? nullptr : std::get_if<T>(&found->second);
    if (!value) throw InternalFault(fmt::format("node '{}' ({}) has no attribute '{}' of the kind asked for", node.name, node.op, name));
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

Graph with_batch(Graph graph, std::int64_t batch) {
    for (GraphInput& input : graph.inputs) {
        if (input.shape.empty()) throw UserError(fmt::format("the input '{}' has no batch dimension", input.name));
        input.shape[0] = batch;
    }
    complete(graph);
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
