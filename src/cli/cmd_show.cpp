// 'loopegg show': a network as a table that a person can read, as JSON, or as a picture.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "graph/architecture.hpp"
#include "graph/dot.hpp"
#include "graph/flops.hpp"
#include "graph/load.hpp"
#include "graph/opaque.hpp"
#include "graph/operators.hpp"

namespace loopegg {
namespace cmd_show {

nlohmann::json as_json(const Graph& graph) {
    nlohmann::json sites = nlohmann::json::array();
    for (const Node& node : graph.nodes) {
        if (!is_site(node)) continue;
        nlohmann::json site{{"name", node.name}, {"op", node.op}, {"input", node.input_shapes.at(0)}, {"shape", node.shape}, {"parameters", parameters(node)},
                            {"macs", macs(node)}};
        if (!node.domain.whole()) site["domain"] = to_string(node.domain);
        sites.push_back(std::move(site));
    }
    const Architecture architecture = classify_architecture(graph);
    return {{"name", graph.name},  {"class", to_string(architecture.kind)}, {"class_why", architecture.why},     {"parameters", parameters(graph)},
            {"macs", macs(graph)}, {"nodes", graph.nodes.size()},           {"opaque", opaque_operators(graph)}, {"sites", sites}};
}

void print_table(const Graph& graph) {
    std::size_t width = 6, op_width = 8;
    for (const Node& node : graph.nodes) width = std::max(width, node.name.size()), op_width = std::max(op_width, node.op.size());
    for (const GraphInput& input : graph.inputs) width = std::max(width, input.name.size());
    auto line = [&](std::string_view name, std::string_view op, std::string_view shape, std::string_view parameters, std::string_view macs,
                    std::string_view site) {
        fmt::print("{:<{}}  {:<{}}  {:<16} {:>13} {:>17}  {}\n", name, width, op, op_width, shape, parameters, macs, site);
    };
    line("node", "operator", "output", "parameters", "MACs", "site");
    int sites = 0;
    for (const GraphInput& input : graph.inputs) line(input.name, "(input)", to_string(input.shape), "", "", "");
    for (const Node& node : graph.nodes) {
        std::string restricted = node.domain.whole() ? "" : "  " + to_string(node.domain);
        line(node.name, node.op, to_string(node.shape), parameters(node) ? with_commas(parameters(node)) : "", macs(node) ? with_commas(macs(node)) : "",
             is_site(node) ? fmt::format("{}{}", ++sites, restricted) : "");
    }
    fmt::print("\n{}: {} nodes, {} sites, {:.2f} M parameters ({}), {:.2f} G MACs ({})\n", graph.name, graph.nodes.size(), sites,
               static_cast<double>(parameters(graph)) / 1e6, with_commas(parameters(graph)), static_cast<double>(macs(graph)) / 1e9, with_commas(macs(graph)));
    for (const auto& [op, count] : opaque_operators(graph)) fmt::print("{} x {}: runs unoptimized; what is around it is optimized\n", count, op);
    const Architecture architecture = classify_architecture(graph);
    fmt::print("class {}: {}\n", to_string(architecture.kind), architecture.why);
}

Action setup(CLI::App& app) {
    struct Options {
        std::string model;
        bool dot = false;
    };
    auto o = std::make_shared<Options>();
    app.add_option("MODEL", o->model, "a model.json, an .onnx file, or zoo:NAME")->required();
    app.add_flag("--dot", o->dot, "print a picture in Graphviz's language instead");
    auto reading = add_reading_options(app);
    return [o, reading](Session& session) {
        std::vector<std::string> notes;
        Graph graph = load_graph(o->model, reading->read(), &notes);
        say_notes(notes);
        if (session.json)
            session.answer(as_json(graph));
        else if (o->dot)
            fmt::print("{}", to_dot(graph));
        else
            print_table(graph);
        return 0;
    };
}

}  // namespace cmd_show

const Command show_command{"show", "print a network: nodes, shapes, parameters, MACs, sites", "loopegg show m.json", cmd_show::setup};

}  // namespace loopegg
