#include "graph/drop_branch.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"
#include "graph/flops.hpp"
#include "graph/hidden_widths.hpp"
#include "graph/operators.hpp"
#include "graph/streams.hpp"

namespace loopegg {
namespace {

bool is_output(const Graph& graph, const std::string& value) { return std::find(graph.outputs.begin(), graph.outputs.end(), value) != graph.outputs.end(); }

std::vector<const Node*> readers_of(const Graph& graph, const std::string& value) {
    std::vector<const Node*> readers;
    for (const Node& node : graph.nodes)
        for (const std::string& input : node.inputs)
            if (input == value) readers.push_back(&node);
    return readers;
}

const std::string& other_operand(const Node& addition, const std::string& value) { return addition.inputs[addition.inputs[0] == value ? 1 : 0]; }

const Shape& shape_of_operand(const Node& node, const std::string& value) { return node.input_shapes[node.inputs[0] == value ? 0 : 1]; }

// Everything reads `instead` where it read `value`.
void replace(Graph& graph, const std::string& value, const std::string& instead) {
    for (Node& node : graph.nodes)
        for (std::string& input : node.inputs)
            if (input == value) input = instead;
}

// The rectifier of a value that came through one already, if that is what `value` feeds, changes nothing.
void drop_second_rectifiers(Graph& graph, const std::string& value) {
    const Node* first = graph.find(value);
    if (!first || (first->op != "relu" && first->op != "relu6")) return;
    std::vector<std::string> second;
    for (const Node* reader : readers_of(graph, value))
        if (reader->op == first->op && !is_output(graph, reader->name)) second.push_back(reader->name);
    for (const std::string& name : second) replace(graph, name, value);
}

// Nodes whose value is needed for nothing once the joins do without `value`.
std::vector<std::string> feeding_only(const Graph& graph, const std::string& value, const std::vector<std::string>& joins) {
    std::set<std::string> needed(graph.outputs.begin(), graph.outputs.end());  // by something that stays
    for (std::size_t i = graph.nodes.size(); i-- > 0;) {
        const Node& node = graph.nodes[i];
        if (!needed.contains(node.name)) continue;
        const bool join = std::find(joins.begin(), joins.end(), node.name) != joins.end();
        for (const std::string& input : node.inputs)
            if (!join || input != value) needed.insert(input);
    }
    std::vector<std::string> out;
    for (const Node& node : graph.nodes)
        if (!needed.contains(node.name)) out.push_back(node.name);
    return out;
}

}  // namespace

Branch branch_written_by(const Graph& graph, const std::string& site) {
    const auto refused = [](std::string why) { return Branch{{}, {}, {}, {}, 0, std::move(why)}; };
    std::string value = site;
    while (true) {
        if (is_output(graph, value)) return refused("'" + value + "' is an output of the network, and no branch of it");
        const std::vector<const Node*> readers = readers_of(graph, value);
        Branch found{site, {}, value, {}, 0, {}};
        if (!readers.empty() && std::all_of(readers.begin(), readers.end(), [](const Node* r) { return r->op == "concat"; })) {
            for (const Node* r : readers) found.joins.push_back(r->name);
        } else if (readers.size() != 1) {
            return refused("'" + value + "' is read in " + std::to_string(readers.size()) + " places, and is no branch that is added to something");
        } else if (readers[0]->op == "add") {
            const Node& addition = *readers[0];
            if (shape_of_operand(addition, other_operand(addition, value)) != addition.shape)
                return refused("what '" + addition.name + "' adds '" + value + "' to is not of the same shape");
            found.joins = {addition.name};
        } else if (keeps_channels_apart(readers[0]->op) || readers[0]->op == "layer_norm") {
            value = readers[0]->name;
            continue;
        } else {
            return refused("'" + readers[0]->name + "' (" + readers[0]->op + ") reads it: a branch ends in an addition or a concatenation");
        }
        for (const std::string& join : found.joins)
            if (is_output(graph, join)) return refused("'" + join + "' is an output of the network");
        found.only = feeding_only(graph, value, found.joins);
        for (const std::string& name : found.only) found.macs += macs(*graph.find(name));
        return found;
    }
}

std::vector<Branch> branches_of(const Graph& graph) {
    std::vector<Branch> all;
    std::map<std::string, std::size_t> by_addition;
    for (const Node& node : graph.nodes) {
        if (!is_site(node)) continue;
        Branch b = branch_written_by(graph, node.name);
        if (!b.why_not.empty()) continue;
        if (graph.find(b.joins[0])->op == "add") {
            const auto [it, first] = by_addition.try_emplace(b.joins[0], all.size());
            if (!first) {
                if (b.macs > all[it->second].macs) all[it->second] = std::move(b);
                continue;
            }
        }
        all.push_back(std::move(b));
    }
    return all;
}

Graph without_branch(const Graph& original, const Branch& branch) {
    if (!branch.why_not.empty()) throw UserError(branch.why_not);
    Graph graph = original;
    const Node& join = *graph.find(branch.joins[0]);
    if (join.op == "add") {
        const std::string other = other_operand(join, branch.value);
        replace(graph, join.name, other);
        drop_second_rectifiers(graph, other);
        graph = without_unread_nodes(std::move(graph));
        complete(graph);
        return graph;
    }
    const Streams streams = streams_of(graph);
    const auto stream = streams.written_by(branch.site);
    const auto value = streams.of.find(branch.value);
    if (!stream || value == streams.of.end() || value->second.streams != std::vector{*stream} || streams.all[*stream].writers.size() != 1)
        throw UserError("the channels of '" + branch.site + "' are others' as well");
    for (const std::string& name : branch.joins)
        if (const auto joined = streams.of.find(name); joined == streams.of.end() || joined->second.streams == std::vector{*stream})
            throw UserError("'" + name + "' joins nothing else");
    return with_widths(std::move(graph), streams, {{*stream, 0}});
}

}  // namespace loopegg
