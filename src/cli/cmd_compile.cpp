// 'loopegg compile': a network as machine code for a target, with good schedules and no search.
#include <algorithm>

#include <fmt/format.h>

#include "backends/network/block_candidates.hpp"
#include "backends/network/int8_calibration.hpp"
#include "backends/network/network.hpp"
#include "backends/network/rounding_error.hpp"
#include "base/atomic_directory.hpp"
#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "graph/load.hpp"
#include "graph/onnx/onnx.hpp"
#include "graph/weights.hpp"
#include "nest/term/int8_scales.hpp"
#include "optimize/run/rounding_data.hpp"

namespace loopegg {
namespace cmd_compile {

struct Arguments {
    std::string model, target = "host", out, data;
    std::uint64_t seed = 0;
    std::vector<std::string> allowed;
    double max_rounding_error = 0.01;
};

bool has_int8_scales(const Model& model) {
    return std::any_of(model.graph.nodes.begin(), model.graph.nodes.end(), [&](const Node& n) { return model.weights.contains(int8_scales_name(n.name)); });
}

// The network for other runtimes, which multiply the same rounded numbers.
void write_rounded_onnx(const Model& model, const std::map<std::string, std::string>& kinds, const std::filesystem::path& file) {
    OnnxWriting how;
    how.rounded = kinds;
    Weights weights = model.weights;
    for (const auto& [site, kind] : how.rounded) {
        if (kind != "int8") continue;
        std::vector<float>& scales = weights.at(int8_scales_name(site)).values;
        const Tensor& weight = weights.at(site + ".weight");
        if (scales.size() > 2) continue;
        const std::vector<float> of_outputs = weight_scales(weight.values, weight.shape[0]);
        scales.insert(scales.end(), of_outputs.begin(), of_outputs.end());
    }
    const OnnxFiles files = onnx_files(model.graph, weights, file.filename().string(), how);
    write_onnx(file, files);
    say_notes(files.notes);
}

struct Rounded {
    Schedules schedules;
    std::map<std::string, std::string> kinds;  // of the sites that round
    nlohmann::json json;
};

// Rounds as many sites as the limit allows, by what that does to the outputs.
Rounded round_sites(const Arguments& a, Model& model, const Target& target) {
    if (target.allowed.empty()) return {};
    const bool int8 = target.allowed.contains("int8");
    if (int8 && !has_int8_scales(model)) require_data_for_scales(a.data);
    const RoundingData data = rounding_data(a.data, model.graph, a.seed, int8 && !a.data.empty());
    if (!data.calibration.empty()) model.weights.merge(int8_scales(model.graph, model.weights, data.calibration));  // those of the model's file stay
    KernelCache kernels;
    const RoundedSites made = round_within({a.max_rounding_error, {}}, {model.graph, model.weights, {}}, target, data.judged, kernels);
    Rounded out{in_float32(made.wide(), model.graph, {}, target), made.kinds(), rounding_json(made)};
    out.json["limit"] = a.max_rounding_error, out.json["data"] = data.source;
    return out;
}

Action setup(CLI::App& app) {
    auto a = std::make_shared<Arguments>();
    app.add_option("MODEL", a->model, "model.json, .onnx, or zoo:NAME")->required();
    app.add_option("--target", a->target, "the machine to compile for ('loopegg targets' lists them)")->capture_default_str();
    app.add_option("-o,--out", a->out, "the folder to write")->required();
    app.add_option("--seed", a->seed, "random seed of the weights if the model has none");
    add_rounding_options(app, a->allowed, a->max_rounding_error);
    app.add_option("--data", a->data,
                   "images on which --allow measures errors, and int8 scales that a model does not contain: a folder of CIFAR-10 or .npy files");
    auto reading = add_reading_options(app);
    return [a, reading](Session& session) {
        Model model = load_model(a->model, a->seed, reading->read());
        say_notes(model.notes);
        const Target target = allowing(find_target(a->target), a->allowed);
        require_linkable(model.graph, target);
        auto [schedules, kinds, rounding] = round_sites(*a, model, target);
        schedules = with_block_estimates(model.graph, std::move(schedules), target);
        FolderUpdate update(a->out);
        CompiledNetwork n = compile_network({model.graph, model.weights, schedules}, target, update.path(), &session.progress);
        if (!rounding.is_null()) write_rounded_onnx(model, kinds, update.path() / "model.onnx");
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

const Command compile_command{"compile", "compile a network for a target", "loopegg compile zoo:resnet34-cifar10 --target host -o compiled",
                              cmd_compile::setup};

}  // namespace loopegg
