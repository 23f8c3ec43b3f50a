// 'loopegg compile': a network as machine code for a target, with good schedules and no search.
#include <fmt/format.h>

#include "backends/network/network.hpp"
#include "backends/network/rounding_error.hpp"
#include "base/error.hpp"
#include "base/whole_folder.hpp"
#include "cli/commands.hpp"
#include "cli/reading_options.hpp"
#include "cli/rounding_options.hpp"
#include "graph/load.hpp"
#include "graph/weights.hpp"

namespace loopegg {
namespace {

struct Arguments {
    std::string model, target = "host", out;
    std::uint64_t seed = 0;
    std::vector<std::string> allowed;
    double max_rounding_error = 0.01;
};

// What the allowed roundings do to the outputs on drawn inputs. Throws UserError where that is too much.
nlohmann::json check_rounding(const Arguments& a, const Model& model, const Target& target) {
    std::vector<std::vector<Tensor>> inputs;
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
        inputs.emplace_back();
        for (const GraphInput& in : model.graph.inputs) inputs.back().push_back(normal_tensor(in.shape, seed, in.name));
    }
    const RoundingError e = rounding_error(model.graph, model.weights, {}, target, inputs);
    if (!(e.largest <= a.max_rounding_error))
        throw UserError(Diagnostic{fmt::format("--allow: outputs would be up to {:.2g} of the largest one away from float32's, and {:.2g} is allowed",
                                               e.largest, a.max_rounding_error),
                                   {},
                                   "leave --allow out, or give a larger --max-rounding-error"});
    return {{"sites", e.sites}, {"largest", e.largest}, {"mean", e.mean}, {"limit", a.max_rounding_error}, {"data", "normal noise"}};
}

Action setup(CLI::App& app) {
    auto a = std::make_shared<Arguments>();
    app.add_option("MODEL", a->model, "model.json, .onnx, or zoo:NAME")->required();
    app.add_option("--target", a->target, "the machine to compile for ('loopegg targets' lists them)")->capture_default_str();
    app.add_option("--out", a->out, "the folder to write")->required();
    app.add_option("--seed", a->seed, "draws the weights of a model that has none");
    add_rounding_options(app, a->allowed, a->max_rounding_error);
    auto reading = add_reading_options(app);
    return [a, reading](Session& session) {
        const Model model = load_model(a->model, a->seed, reading->read());
        say_notes(model.notes);
        const Target target = allowing(find_target(a->target), a->allowed);
        require_linkable(model.graph, target);
        const nlohmann::json rounding = a->allowed.empty() ? nlohmann::json() : check_rounding(*a, model, target);
        FolderUpdate update(a->out);
        CompiledNetwork n = compile_network({model.graph, model.weights, {}}, target, update.path(), &session.progress);
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
                            {"linked", n.linked},
                            {"rounding", rounding}});
        else
            fmt::print("{}: {} kernels, {} steps, {:.1f} MB of activations, {:.1f} MB of weights\n", n.folder.string(), n.kernels, n.steps, n.arena_bytes / 1e6,
                       n.weight_bytes / 1e6);
        if (!session.json && !rounding.is_null())
            fmt::print("operands of {} sites are rounded; outputs are at most {:.2g} of the largest one away from float32's on normal noise\n",
                       rounding["sites"].get<int>(), rounding["largest"].get<double>());
        return 0;
    };
}

}  // namespace

const Command compile_command{"compile", "compile a network for a target", "loopegg compile zoo:resnet34-cifar10 --target host --out compiled", setup};

}  // namespace loopegg
