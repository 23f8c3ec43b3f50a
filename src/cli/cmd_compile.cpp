// 'loopegg compile': a network as machine code for a target, with good schedules and no search.
#include <fmt/format.h>

#include "backends/network/network.hpp"
#include "base/whole_folder.hpp"
#include "cli/commands.hpp"
#include "cli/reading_options.hpp"
#include "graph/load.hpp"

namespace loopegg {
namespace {

struct Arguments {
    std::string model, target = "host", out;
    std::uint64_t seed = 0;
};

Action setup(CLI::App& app) {
    auto a = std::make_shared<Arguments>();
    app.add_option("MODEL", a->model, "model.json, .onnx, or zoo:NAME")->required();
    app.add_option("--target", a->target, "the machine to compile for ('loopegg targets' lists them)")->capture_default_str();
    app.add_option("--out", a->out, "the folder to write")->required();
    app.add_option("--seed", a->seed, "draws the weights of a model that has none");
    auto reading = add_reading_options(app);
    return [a, reading](Session& session) {
        const Model model = load_model(a->model, a->seed, reading->read());
        say_notes(model.notes);
        const Target target = find_target(a->target);
        require_compiler(target);
        FolderUpdate update(a->out);
        CompiledNetwork n = compile_network(model.graph, model.weights, {}, target, update.path(), &session.progress);
        update.commit();
        n.folder = a->out;
        if (!n.linked)
            session.progress.note(
                fmt::format("there is no C compiler for {} here: the folder has objects and sources, and network.c says how to make network.so of them",
                            target.architecture()));
        if (session.json)
            session.answer({{"folder", n.folder.string()},
                            {"target", n.target},
                            {"kernels", n.kernels},
                            {"steps", n.steps},
                            {"arena_bytes", n.arena_bytes},
                            {"weight_bytes", n.weight_bytes},
                            {"linked", n.linked}});
        else
            fmt::print("{}: {} kernels, {} steps, {:.1f} MB of activations, {:.1f} MB of weights\n", n.folder.string(), n.kernels, n.steps, n.arena_bytes / 1e6,
                       n.weight_bytes / 1e6);
        return 0;
    };
}

}  // namespace

const Command compile_command{"compile", "compile a network for a target", "loopegg compile zoo:resnet34-cifar10 --target host --out compiled", setup};

}  // namespace loopegg
