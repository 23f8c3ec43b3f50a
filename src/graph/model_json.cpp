#include "graph/model_json.hpp"

#include <unordered_map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "graph/operators.hpp"

namespace loopegg {
namespace {

// 10000000000000000000000, and not 1e22: the parser makes a fraction of both.
bool written_as_whole(const JsonView& view) {
    const Position at = view.where();
    const std::string_view text = std::string_view(at.source->text).substr(at.offset);
    return text.substr(0, text.find_first_not_of("+-.0123456789eE")).find_first_of(".eE") == std::string_view::npos;
}

constexpr std::uintmax_t max_model_bytes = 256u << 20;

Attr attribute(const JsonView& view) {
    const nlohmann::json& v = view.value();
    if (v.is_number_integer()) return view.integer();
    if (v.is_number()) {
        double d = view.number();
        if (std::abs(d) >= 9e18 && written_as_whole(view)) view.integer();  // a whole number that does not fit says so
        return d;
    }
    if (v.is_boolean()) return view.boolean();
    if (v.is_string()) return view.text();
    if (v.is_array()) return view.integers();
    view.fail(fmt::format("an attribute is a number, a string, a truth value or an array of whole numbers, found {}", view.kind()));
}

Domain read_domain(const JsonView& view) {
    view.only({"parts", "restore"});
    Domain out;
    for (const JsonView& part : view.at("parts").items()) {
        DomainPart& made = out.parts.emplace_back();
        for (const JsonView& condition : part.items())
            if (std::string problem = add_condition(made, condition.text()); !problem.empty()) condition.fail(problem);
    }
    if (auto restore = view.find("restore")) {
        if (restore->text() == "repeat")
            out.restore = Restore::repeat;
        else if (restore->text() == "zero")
            out.restore = Restore::zero;
        else
            restore->fail(fmt::format("unknown restore '{}', expected 'repeat' or 'zero'", restore->text()));
    }
    return out;
}

// Finds the place of what a complaint is about, in the JSON that the node came from.
class Places {
public:
    explicit Places(const JsonView& root) : root_(root) {}
    void add(const JsonView& node) { nodes_.emplace(node.where().offset, node); }

    Position find(const Node& node, std::string_view about) const {
        if (about == "outputs") {
            for (const JsonView& name : root_.at("outputs").items())
                if (name.text() == node.inputs[0]) return name.where();
            return root_.at("outputs").where();
        }
        if (about == "graph-inputs") {
            JsonView inputs = root_.at("inputs");
            Position found = inputs.where();  // of two inputs with one name, the second is to blame
            for (const JsonView& input : inputs.items())
                if (input.at("name").text() == node.inputs[0]) found = input.where();
            return found;
        }
        auto at = nodes_.find(node.where.offset);
        if (at == nodes_.end()) return node.where;
        const JsonView& view = at->second;
        std::string_view head = about.substr(0, about.find('.')), tail = about.substr(std::min(about.size(), head.size() + 1));
        if (head == "key") return view.at("attrs").at(tail).key_where();
        auto part = head.empty() ? std::nullopt : view.find(head);
        if (!part) return node.where;
        if (head == "attrs") {
            auto attr = tail.empty() ? std::nullopt : part->find(tail);
            return attr ? attr->where() : part->where();
        }
        if (head == "inputs" && !tail.empty())
            if (std::size_t i = static_cast<std::size_t>(std::stoul(std::string(tail))); i < part->items().size()) return part->items()[i].where();
        return part->where();
    }

private:
    JsonView root_;
    std::unordered_map<std::size_t, JsonView> nodes_;  // by offset
};

// Reads are forgiving about a missing "attrs"; everything else must be there.
Node node_of(const JsonView& view) {
    view.only({"name", "op", "inputs", "attrs", "domain"});
    Node node{view.at("name").text(), view.at("op").text(), view.at("inputs").texts()};
    node.where = view.where();
    if (auto attrs = view.find("attrs"))
        for (const auto& [key, value] : attrs->members()) node.attrs[key] = attribute(value);
    if (auto d = view.find("domain")) node.domain = read_domain(*d);
    return node;
}

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); }

std::string json_list(const auto& items, auto print) {
    std::string out = "[";
    for (const auto& item : items) out += (out.size() > 1 ? ", " : "") + print(item);
    return out + "]";
}

std::string written(const Attr& attr) {
    return std::visit(
        [](const auto& v) -> std::string {
            using T = std::decay_t<decltype(v)>;
            if constexpr (std::is_same_v<T, std::string>)
                return quoted(v);
            else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>)
                return json_list(v, [](std::int64_t i) { return std::to_string(i); });
            else
                return nlohmann::json(v).dump();  // the shortest text that reads back as the same number
        },
        attr);
}

bool is_default(const Node& node, const AttrSpec& spec) {
    const Attr& value = node.attrs.at(std::string(spec.name));
    return spec.like.empty() ? spec.fallback && *spec.fallback == value : node.attrs.at(std::string(spec.like)) == value;
}

std::string node_line(const Node& node) {
    std::string line = fmt::format("{{\"name\": {}, \"op\": {}, \"inputs\": {}", quoted(node.name), quoted(node.op), json_list(node.inputs, quoted));
    std::string attrs;
    for (const AttrSpec& spec : operator_of(node).attrs)
        if (!is_default(node, spec)) attrs += fmt::format("{}\"{}\": {}", attrs.empty() ? "" : ", ", spec.name, written(node.attrs.at(std::string(spec.name))));
    if (!attrs.empty()) line += ", \"attrs\": {" + attrs + "}";
    if (!node.domain.whole()) {
        line += ", \"domain\": {\"parts\": " + json_list(node.domain.parts, [](const DomainPart& part) {
                    std::vector<std::string> conditions;
                    for (const DigitRange& r : part.ranges) conditions.push_back(to_string(r));
                    for (const DigitPair& p : part.diagonals) conditions.push_back(to_string(p));
                    return json_list(conditions, quoted);
                });
        if (node.domain.restore != Restore::none) line += fmt::format(", \"restore\": \"{}\"", to_string(node.domain.restore));
        line += "}";
    }
    return line + "}";
}

}  // namespace

Graph read_model(const SourcePtr& source) {
    JsonView root = read_json(source);
    if (!root.value().is_object()) root.fail(fmt::format("expected a model (an object), found {}", root.kind()));
    JsonView version = root.at("loopegg");
    if (version.integer() != 1) version.fail(fmt::format("this is version {} of the format, this program reads version 1", version.integer()));
    root.only({"loopegg", "name", "opset", "inputs", "nodes", "outputs", "weights"});
    Graph graph;
    graph.name = root.at("name").text();
    if (auto opset = root.find("opset")) {
        graph.opset = opset->integer();
        if (graph.opset < oldest_opset || graph.opset > newest_opset)
            opset->fail(fmt::format("an opset is a number from {} to {}, not {}", oldest_opset, newest_opset, graph.opset));
    }
    for (const JsonView& input : root.at("inputs").items()) {
        input.only({"name", "shape", "dtype", "batch"});
        GraphInput& made = graph.inputs.emplace_back(GraphInput{input.at("name").text(), input.at("shape").integers()});
        if (auto dtype = input.find("dtype")) made.dtype = dtype->text();
        if (auto batch = input.find("batch")) {
            made.batch = batch->text();
            if (made.batch.empty() || made.shape.empty())
                batch->fail("\"batch\" is the name of an open first dimension: a word, on an input that has dimensions");
        }
    }
    Places places(root);
    for (const JsonView& node : root.at("nodes").items()) {
        graph.nodes.push_back(node_of(node));
        places.add(node);
    }
    graph.outputs = root.at("outputs").texts();
    if (auto weights = root.find("weights")) {
        graph.weights_file = weights->text();
        // Weights are next to the model: a name that leads elsewhere is a mistake or an attack.
        if (graph.weights_file.empty() || graph.weights_file.find('/') != std::string::npos || graph.weights_file == "..")
            weights->fail("\"weights\" names a file next to the model, without folders");
    }
    complete(graph, [&](const Node& node, std::string_view about) { return places.find(node, about); });
    return graph;
}

Graph read_model(const std::filesystem::path& path) { return read_model(read_source(path, max_model_bytes)); }

std::string write_node(const Node& node) { return node_line(node); }
Node read_node(const SourcePtr& source) { return node_of(read_json(source)); }

std::string write_model(const Graph& graph) {
    std::string out = fmt::format("{{\"loopegg\": 1,\n \"name\": {},\n", quoted(graph.name));
    if (graph.opset != 0) out += fmt::format(" \"opset\": {},\n", graph.opset);
    out += " \"inputs\": [";
    auto number = [](std::int64_t i) { return std::to_string(i); };
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
        const GraphInput& input = graph.inputs[i];
        const std::string batch = input.batch.empty() ? "" : ", \"batch\": " + quoted(input.batch);
        out += fmt::format("{}{{\"name\": {}, \"shape\": {}, \"dtype\": {}{}}}", i ? ", " : "", quoted(input.name), json_list(input.shape, number),
                           quoted(input.dtype), batch);
    }
    out += "],\n \"nodes\": [";
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) out += (i ? ",\n  " : "\n  ") + node_line(graph.nodes[i]);
    out += fmt::format("],\n \"outputs\": {}", json_list(graph.outputs, quoted));
    if (!graph.weights_file.empty()) out += fmt::format(",\n \"weights\": {}", quoted(graph.weights_file));
    return out + "}\n";
}

}  // namespace loopegg
