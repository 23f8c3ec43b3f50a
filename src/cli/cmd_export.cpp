// 'loopegg export': any model, restricted ones too, becomes an ONNX file of standard operators or a plain PyTorch module.
#include <fmt/format.h>

#include "base/files.hpp"
#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "graph/onnx/onnx.hpp"
#include "graph/pytorch/network_py.hpp"
#include "graph/safetensors.hpp"

namespace loopegg {
namespace cmd_export {

Action setup(CLI::App& app) {
    struct Options {
        std::string model, out;
        std::uint64_t seed = 0;
    };
    auto o = std::make_shared<Options>();
    app.add_option("MODEL", o->model, "a model.json, an ONNX file, or zoo:NAME")->required();
    app.add_option("-o,--out", o->out, "the file to write: .onnx, or .py for a PyTorch module with weights.safetensors next to it")->required();
    app.add_option("--seed", o->seed, "draws the weights of a model that has none");
    auto reading = add_reading_options(app);
    return [o, reading](Session& session) {
        Model model = load_model(o->model, o->seed, reading->read());
        say_notes(model.notes);
        const bool torch = o->out.ends_with(".py");
        const std::filesystem::path out = o->out;
        const OnnxFiles files = torch ? OnnxFiles{network_py(model.graph)} : onnx_files(model.graph, model.weights, out.filename().string());
        if (torch) write_file(std::filesystem::path(out).replace_filename("weights.safetensors"), write_safetensors(model.weights));
        write_onnx(out, files);
        say_notes(files.notes);
        const std::size_t bytes = files.model.size() + files.data.size();
        if (session.json)
            session.answer({{"name", model.graph.name}, {"file", o->out}, {"bytes", bytes}, {"notes", files.notes}});
        else
            fmt::print("{}: {} nodes, {:.1f} MB\n", o->out, model.graph.nodes.size(), static_cast<double>(bytes) / 1e6);
        return 0;
    };
}

}  // namespace cmd_export

const Command export_command{"export", "write a model as an ONNX file or as a PyTorch module", "loopegg export m.json -o m.onnx", cmd_export::setup};

}  // namespace loopegg
