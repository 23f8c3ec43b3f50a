// 'loopegg compile': a network as machine code for a target, with good schedules and no search.
#include <fmt/format.h>

#include "backends/network/int8_calibration.hpp"
#include "backends/network/network.hpp"
#include "backends/network/rounding_error.hpp"
#include "base/atomic_directory.hpp"
#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "graph/load.hpp"
#include "optimize/run/rounding_data.hpp"

namespace loopegg {
namespace cmd_compile {

struct Arguments {
    std::string model, target = "host", out, data;
    std::uint64_t seed = 0;
    std::vector<std::string> allowed;
    double max_rounding_error = 0.01;
};

struct Rounded {
    Schedules schedules;
    nlohmann::json json;
};

// Rounds as many sites as the limit allows, by what that does to the outputs.
Rounded round_sites(const Arguments& a, Model& model, const Target& target) {
    if (target.allowed.empty()) return {};
    const bool int8 = target.allowed.contains("int8");
    const RoundingData data = rounding_data(a.data, model.graph, a.seed, int8);
    if (int8)
        for (auto& [name, scale] : int8_scales(model.graph, model.weights, data.calibration)) model.weights[name] = std::move(scale);
    KernelCache kernels;
    const RoundedSites made = round_within({a.max_rounding_error, {}}, {model.graph, model.weights, {}}, target, data.judged, kernels);
    Rounded out{in_float32(made.wide(), model.graph, {}, target), rounding_json(made)};
    out.json["limit"] = a.max_rounding_error, out.json["data"] = data.source;
    return out;
}

Action setup(CLI::App& app) {
    auto a = std::make_shared<Arguments>();
    app.add_option("MODEL", a->model, "model.json, .onnx, or zoo:NAME")->required();
    app.add_option("--target", a->target, "the machine to compile for ('loopegg targets' lists them)")->capture_default_str();
    app.add_option("--out", a->out, "the folder to write")->required();
    app.add_option("--seed", a->seed, "draws the weights of a model that has none");
    add_rounding_options(app, a->allowed, a->max_rounding_error);
    app.add_option("--data", a->data, "a folder of CIFAR-10 or of .npy batches, by which --allow measures its errors, and int8 its scales");
    auto reading = add_reading_options(app);
    return [a, reading](Session& session) {
        Model model = load_model(a->model, a->seed, reading->read());
        say_notes(model.notes);
        const Target target = allowing(find_target(a->target), a->allowed);
        require_linkable(model.graph, target);
        const auto [schedules, rounding] = round_sites(*a, model, target);
        FolderUpdate update(a->out);
        CompiledNetwork n = compile_network({model.graph, model.weights, schedules}, target, update.path(), &session.progress);
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
            fmt::print("operands of {} sites are rounded, {} more stay in float32; {:.2g} of the largest output at most on {}, {} of {} answers the same\n",
                       rounding["sites"].get<int>(), rounding["kept_in_float32"].get<int>(), rounding["largest"].get<double>(),
                       rounding["data"].get<std::string>(), rounding["same_answer"].get<int>(), rounding["outputs"].get<int>());
        return 0;
    };
}

}  // namespace cmd_compile

const Command compile_command{"compile", "compile a network for a target", "loopegg compile zoo:resnet34-cifar10 --target host --out compiled",
                              cmd_compile::setup};

}  // namespace loopegg
