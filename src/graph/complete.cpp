#include <algorithm>
#include <cmath>
#include <unordered_map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/quote.hpp"
#include "base/text.hpp"
#include "graph/graph.hpp"
#include "graph/operators.hpp"

namespace loopegg {
namespace {

constexpr std::int64_t max_elements = std::int64_t{1} << 40;  // of one tensor: more than any machine here holds
constexpr std::int64_t max_whole = std::int64_t{1} << 31;     // of one attribute: sums and products of two stay within 64 bits

class Completion {
public:
    Completion(Graph& graph, const Locate& locate) : graph_(graph), locate_(locate) {}

    void run() {
        check_inputs();
        graph_.name = terminal_text(graph_.name);  // a name is one line, wherever it is shown
        check_names();
        for (Node& node : graph_.nodes) check_node(node);
        sort();
        for (Node& node : graph_.nodes) infer(node);
        for (const std::string& name : graph_.outputs)
            if (!known_.contains(name))
                throw UserError(Diagnostic{fmt::format("the output '{}' is no node of the graph", name), locate_output(name), suggest(name)});
        if (graph_.outputs.empty()) throw UserError(Diagnostic{"the graph has no outputs", locate_output("")});
    }

private:
    [[noreturn]] void fail(const Node& node, std::string message, std::string_view about, std::string hint = {}) const {
        Position where = locate_ ? locate_(node, about) : node.where;
        if (!where.known()) message = fmt::format("node '{}': {}", node.name, message);
        throw UserError(Diagnostic{std::move(message), std::move(where), std::move(hint)});
    }

    // Graph-wide complaints go through the same function with a node that has no name.
    Position locate_output(const std::string& name) const {
        Node nameless;
        nameless.inputs = {name};
        return locate_ ? locate_(nameless, "outputs") : Position{};
    }
    Position locate_input(const GraphInput& input) const {
        Node nameless;
        nameless.inputs = {input.name};
        return locate_ ? locate_(nameless, "graph-inputs") : Position{};
    }

    std::string suggest(const std::string& typed) const {
        std::vector<std::string> names;
        for (const GraphInput& input : graph_.inputs) names.push_back(input.name);
        for (const Node& node : graph_.nodes) names.push_back(node.name);
        return did_you_mean(typed, names);
    }

    // Empty when the shape is sane, else what is wrong with it.
    static std::string shape_problem(const Shape& shape) {
        std::int64_t count = 1;
        for (std::int64_t d : shape) {
            if (d < 1) return fmt::format("a dimension of {}: dimensions are at least 1", d);
            if (__builtin_mul_overflow(count, d, &count) || count > max_elements)
                return fmt::format("a tensor of more than 2^40 elements ({})", to_string(shape));
        }
        return shape.size() > 8 ? "more than 8 dimensions" : "";
    }

    void check_inputs() {
        for (const GraphInput& input : graph_.inputs) {
            auto fail_input = [&](std::string message, std::string hint = {}) {
                throw UserError(Diagnostic{fmt::format("input '{}': {}", input.name, message), locate_input(input), std::move(hint)});
            };
            if (input.name.empty()) fail_input("its name is empty");
            if (first_invalid_utf8(input.name)) fail_input("its name is not valid UTF-8");
            if (terminal_text(input.name) != input.name) fail_input("its name has a control character");
            if (input.dtype != "float32" && input.dtype != "int64" && input.dtype != "int32" && input.dtype != "bool")
                fail_input(fmt::format("dtype '{}' is not supported; 'float32' is, and 'int64', 'int32' and 'bool' where opaque nodes read them", input.dtype));
            if (std::string problem = shape_problem(input.shape); !problem.empty()) fail_input(problem);
            if (!known_.emplace(input.name, input.shape).second) fail_input("the name is used twice");
        }
        if (graph_.inputs.empty()) throw UserError(Diagnostic{"the graph has no inputs", locate_input({})});
    }

    void check_names() {
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
            const Node& node = graph_.nodes[i];
            if (node.name.empty()) fail(node, "a node needs a name", "name");
            if (first_invalid_utf8(node.name)) fail(node, "the name is not valid UTF-8", "name");
            if (terminal_text(node.name) != node.name) fail(node, "the name has a control character", "name");
            if (known_.contains(node.name)) fail(node, fmt::format("the name '{}' is an input's name as well", node.name), "name");
            if (!place_.emplace(node.name, i).second) fail(node, fmt::format("the name '{}' is used twice", node.name), "name");
        }
    }

    void check_node(Node& node) {
        const Operator* op = find_operator(node.op);
        if (!op) {
            std::vector<std::string_view> names;
            for (const Operator& known : operators()) names.push_back(known.name);
            fail(node, fmt::format("unknown operator '{}'", node.op), "op", did_you_mean(node.op, names));
        }
        int count = static_cast<int>(node.inputs.size());
        if (count < op->min_inputs || count > op->max_inputs) {
            std::string wanted = op->min_inputs == op->max_inputs ? std::to_string(op->min_inputs) : fmt::format("{} or more", op->min_inputs);
            fail(node, fmt::format("{} takes {} input{}, found {}", node.op, wanted, wanted == "1" ? "" : "s", count), "inputs");
        }
        for (std::size_t i = 0; i < node.inputs.size(); ++i)
            if (!known_.contains(node.inputs[i]) && !place_.contains(node.inputs[i]))
                fail(node, fmt::format("there is no node or input named '{}'", node.inputs[i]), fmt::format("inputs.{}", i), suggest(node.inputs[i]));
        for (const auto& [name, value] : node.attrs)
            if (std::none_of(op->attrs.begin(), op->attrs.end(), [&](const AttrSpec& a) { return a.name == name; })) {
                std::vector<std::string_view> names;
                for (const AttrSpec& a : op->attrs) names.push_back(a.name);
                fail(node, fmt::format("{} has no attribute '{}'", node.op, name), "key." + name, did_you_mean(name, names));
            }
        for (const AttrSpec& spec : op->attrs) fill(node, spec);
    }

    void fill(Node& node, const AttrSpec& spec) {
        std::string name(spec.name), about = "attrs." + name;
        auto found = node.attrs.find(name);
        if (found == node.attrs.end()) {
            if (!spec.like.empty())
                node.attrs[name] = node.attrs.at(std::string(spec.like));
            else if (spec.fallback)
                node.attrs[name] = *spec.fallback;
            else
                fail(node, fmt::format("{} needs the attribute '{}'", node.op, name), "attrs");
            return;
        }
        Attr& value = found->second;
        if (auto* one = std::get_if<std::int64_t>(&value)) {  // a whole number may represent a real or for a list of equals
            if (spec.kind == AttrKind::real)
                value = static_cast<double>(*one);
            else if (spec.kind == AttrKind::integers && spec.length > 0)
                value = std::vector<std::int64_t>(static_cast<std::size_t>(spec.length), *one);
        }
        constexpr AttrKind kinds[] = {AttrKind::integer, AttrKind::real, AttrKind::boolean, AttrKind::text, AttrKind::integers};
        constexpr const char* words[] = {"a whole number", "a number", "true or false", "a string", "an array of whole numbers"};
        if (kinds[value.index()] != spec.kind)
            fail(node, fmt::format("'{}' must be {}, found {}", name, words[static_cast<int>(spec.kind)], words[value.index()]), about);
        auto in_range = [&](std::int64_t i) {
            if (i < spec.low || i > max_whole) fail(node, fmt::format("'{}' must be from {} to 2^31, found {}", name, spec.low, i), about);
        };
        if (auto* one = std::get_if<std::int64_t>(&value)) in_range(*one);
        if (auto* real = std::get_if<double>(&value); real && !std::isfinite(*real)) fail(node, fmt::format("'{}' must be a finite number", name), about);
        if (auto* many = std::get_if<std::vector<std::int64_t>>(&value)) {
            if (spec.length && many->size() != static_cast<std::size_t>(spec.length))
                fail(node, fmt::format("'{}' needs {} numbers, found {}", name, spec.length, many->size()), about);
            if (many->size() > 8) fail(node, fmt::format("'{}' has {} numbers, at most 8 make sense", name, many->size()), about);
            for (std::int64_t i : *many) in_range(i);
        }
    }

    // Depth-first in the order given, with an explicit stack; a node met again while it is open closes a cycle.
    void sort() {
        enum class Mark : char { fresh, open, done };
        std::vector<Mark> mark(graph_.nodes.size(), Mark::fresh);
        std::vector<std::size_t> order;
        for (std::size_t root = 0; root < graph_.nodes.size(); ++root) {
            if (mark[root] != Mark::fresh) continue;
            std::vector<std::pair<std::size_t, std::size_t>> stack{{root, 0}};  // node, next input
            mark[root] = Mark::open;
            while (!stack.empty()) {
                auto& [at, next] = stack.back();
                const Node& node = graph_.nodes[at];
                if (next == node.inputs.size()) {
                    mark[at] = Mark::done;
                    order.push_back(at);
                    stack.pop_back();
                    continue;
                }
                auto child = place_.find(node.inputs[next++]);
                if (child == place_.end() || mark[child->second] == Mark::done) continue;
                if (mark[child->second] == Mark::open) {
                    std::string cycle = graph_.nodes[child->second].name;
                    for (std::size_t i = stack.size(); i-- > 0;) {
                        cycle += " <- " + graph_.nodes[stack[i].first].name;
                        if (stack[i].first == child->second) break;
                    }
                    // The stack goes from consumer to producer: read backwards it is the way of the data.
                    fail(graph_.nodes[child->second], fmt::format("a cycle: {}", cycle), "");
                }
                mark[child->second] = Mark::open;
                stack.emplace_back(child->second, 0);
            }
        }
        std::vector<Node> sorted;
        for (std::size_t i : order) sorted.push_back(std::move(graph_.nodes[i]));
        graph_.nodes = std::move(sorted);
    }

    void infer(Node& node) {
        node.input_shapes.clear();
        for (const std::string& name : node.inputs) node.input_shapes.push_back(known_.at(name));
        try {
            node.shape = operator_of(node).infer(node);
            if (std::string problem = shape_problem(node.shape); !problem.empty()) throw NodeProblem{problem, ""};
            for (const Parameter& p : parameters_of(node))
                if (std::string problem = shape_problem(p.shape); !problem.empty()) throw NodeProblem{fmt::format("its parameter {}: {}", p.name, problem), ""};
            std::int64_t instances = 1;
            for (const Axis& axis : axes_of(node))
                if (__builtin_mul_overflow(instances, axis.extent, &instances) || instances > (std::int64_t{1} << 60))
                    throw NodeProblem{"more than 2^60 multiplications", ""};
            check_once(node.domain, axes_of(node));
        } catch (const NodeProblem& problem) {
            fail(node, problem.message, problem.about);
        }
        known_.emplace(node.name, node.shape);
    }

    // Many sites of a network have the same axes and the same domain, and the check is long.
    void check_once(const Domain& domain, std::vector<Axis> axes) {
        if (std::any_of(checked_.begin(), checked_.end(), [&](const auto& c) { return c.first == domain && c.second == axes; })) return;
        check_domain(domain, axes);
        if (!domain.whole()) checked_.emplace_back(domain, std::move(axes));
    }

    Graph& graph_;
    const Locate& locate_;
    std::vector<std::pair<Domain, std::vector<Axis>>> checked_;
    std::unordered_map<std::string, Shape> known_;        // shapes of inputs, and of nodes inferred so far
    std::unordered_map<std::string, std::size_t> place_;  // of nodes
};

}  // namespace

void complete(Graph& graph, const Locate& locate) { Completion(graph, locate).run(); }

}  // namespace loopegg
