// 'loopegg import': an ONNX file becomes a model.json with its weights next to it.
#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "graph/flops.hpp"
#include "graph/onnx/onnx.hpp"
#include "graph/opaque.hpp"

namespace loopegg {
namespace cmd_import {

Action setup(CLI::App& app) {
    struct Options {
        std::string file, out;
    };
    auto o = std::make_shared<Options>();
    app.add_option("FILE", o->file, "an .onnx file")->required();
    app.add_option("-o,--out", o->out, "the model.json to write; the weights go to a .safetensors file next to it")->required();
    auto reading = add_reading_options(app);
    return [o, reading](Session& session) {
        Model model = read_onnx(o->file, reading->read());
        say_notes(model.notes);
        const std::map<std::string, int> opaque = opaque_operators(model.graph);
        save_model(model.graph, model.weights, o->out);
        if (session.json)
            session.answer({{"name", model.graph.name},
                            {"file", o->out},
                            {"nodes", model.graph.nodes.size()},
                            {"parameters", parameters(model.graph)},
                            {"macs", macs(model.graph)},
                            {"opaque", opaque},
                            {"notes", model.notes}});
        else
            fmt::print("{}: {} nodes, {:.2f} M parameters, {:.2f} G MACs\n", o->out, model.graph.nodes.size(),
                       static_cast<double>(parameters(model.graph)) / 1e6, static_cast<double>(macs(model.graph)) / 1e9);
        for (const auto& [op, count] : opaque)
            if (!session.json) fmt::print("{} x {}: runs unoptimized; what is around it is optimized\n", count, op);
        return 0;
    };
}

}  // namespace cmd_import

const Command import_command{"import", "read an ONNX file and write it as a model.json", "loopegg import resnet18.onnx -o resnet18.json", cmd_import::setup};

}  // namespace loopegg
