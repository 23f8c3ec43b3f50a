// 'loopegg export': any model, restricted ones too, becomes an ONNX file of standard operators.
#include <fmt/format.h>

#include "base/files.hpp"
#include "cli/commands.hpp"
#include "graph/onnx/onnx.hpp"

namespace loopegg {
namespace {

Action setup(CLI::App& app) {
    struct Options { std::string model, out; std::uint64_t seed = 0; };
    auto o = std::make_shared<Options>();
    app.add_option("MODEL", o->model, "a model.json or zoo:NAME")->required();
    app.add_option("-o,--out", o->out, "the .onnx file to write")->required();
    app.add_option("--seed", o->seed, "draws the weights of a model that has none");
    return [o](Session& session) {
        Model model = load_model(o->model, o->seed);
        std::string bytes = export_onnx(model.graph, model.weights);
        write_file(o->out, bytes);
        if (session.json) session.answer({{"name", model.graph.name}, {"file", o->out}, {"bytes", bytes.size()}});
        else fmt::print("{}: {} nodes, {:.1f} MB\n", o->out, model.graph.nodes.size(), static_cast<double>(bytes.size()) / 1e6);
        return 0;
    };
}

}  // namespace

const Command export_command{"export", "write a model as an ONNX file", "loopegg export m.json -o m.onnx", setup};

}  // namespace loopegg
