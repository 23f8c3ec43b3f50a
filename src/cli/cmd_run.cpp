// 'loopegg run': one inference of a compiled network on this machine.
#include <fmt/format.h>

#include "backends/measure/network_measure.hpp"
#include "backends/network/network.hpp"
#include "base/atomic_directory.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/quote.hpp"
#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "graph/interpreter.hpp"
#include "graph/npy.hpp"
#include "graph/weights.hpp"

namespace loopegg {
namespace cmd_run {

struct Arguments {
    std::string folder, out;
    std::vector<std::string> inputs;
    std::uint64_t seed = 0;
};

// Of input i: the file that names it, or the one at its place.
std::string file_for(const std::vector<std::string>& files, const std::vector<GraphInput>& inputs, std::size_t i) {
    bool by_name = false;
    for (const std::string& f : files)
        for (const GraphInput& in : inputs) {
            if (!f.starts_with(in.name + "=")) continue;
            if (in.name == inputs[i].name) return f.substr(in.name.size() + 1);
            by_name = true;
        }
    if (by_name) throw UsageError(fmt::format("no file for the input '{}': give {}=FILE", inputs[i].name, inputs[i].name));
    return files[i];
}

std::filesystem::path named(const std::filesystem::path& file, std::string name) {
    for (char& c : name)
        if (c == '/' || c == '\0') c = '_';
    std::filesystem::path out = file;
    return out.replace_filename(file.stem().string() + "." + name + file.extension().string());
}

struct Ran {
    std::vector<std::string> names;
    std::vector<Tensor> outputs;
};

std::vector<Tensor> inputs_for(const Arguments& a, const std::vector<GraphInput>& all) {
    if (!a.inputs.empty() && a.inputs.size() != all.size())
        throw UsageError(fmt::format("the network takes {} inputs, and {} are given", all.size(), a.inputs.size()));
    std::vector<Tensor> inputs;
    for (std::size_t i = 0; i < all.size(); ++i)
        inputs.push_back(a.inputs.empty() ? normal_tensor(all[i].shape, a.seed, all[i].name) : read_npy(file_for(a.inputs, all, i)));
    return inputs;
}

// In a process of its own, confined: the code in the folder need not be ours.
Ran run_compiled(const Arguments& a) {
    require_whole(a.folder, "loopegg compile MODEL --out " + shell_word(a.folder));
    const NetworkPorts network = read_ports(a.folder);
    Ran ran{{}, run_confined(a.folder, inputs_for(a, network.inputs))};
    for (const GraphInput& out : network.outputs) ran.names.push_back(out.name);
    return ran;
}

Ran run_interpreted(const Arguments& a, const OnnxReading& how) {
    const Model model = load_model(a.folder, a.seed, how);
    say_notes(model.notes);
    std::vector<Tensor> inputs = inputs_for(a, model.graph.inputs);
    Tensors given;
    for (std::size_t i = 0; i < inputs.size(); ++i) given[model.graph.inputs[i].name] = std::move(inputs[i]);
    const Tensors all = interpret(model.graph, model.weights, given);
    Ran ran{model.graph.outputs, {}};
    for (const std::string& name : ran.names) ran.outputs.push_back(all.at(name));
    return ran;
}

Action setup(CLI::App& app) {
    auto a = std::make_shared<Arguments>();
    app.add_option("DIR", a->folder, "a compiled network ('loopegg compile'), or a model, which the interpreter runs slowly")->required();
    app.add_option("--input", a->inputs, "one .npy file for each input, in order or as NAME=FILE (default: random values)");
    app.add_option("-o,--out,--output", a->out, "the .npy file to write; several outputs become several files: y.NAME.npy for y.npy");
    app.add_option("--seed", a->seed, "random seed of the input if none is given");
    auto reading = add_reading_options(app);
    return [a, reading](Session& session) {
        Ran ran = std::filesystem::is_directory(a->folder) ? run_compiled(*a) : run_interpreted(*a, reading->read());
        const std::vector<Tensor>& outputs = ran.outputs;
        for (std::size_t i = 0; !a->out.empty() && i < outputs.size(); ++i)
            write_file(outputs.size() == 1 ? std::filesystem::path(a->out) : named(a->out, ran.names[i]), write_npy(outputs[i]));
        nlohmann::json all = nlohmann::json::array();
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            const auto& v = outputs[i].values;
            if (session.json)
                all.push_back({{"name", ran.names[i]}, {"shape", outputs[i].shape}, {"values", v}});
            else {
                fmt::print("{}", ran.names[i]);
                for (std::size_t k = 0; k < std::min<std::size_t>(v.size(), 10); ++k) fmt::print(" {:.6g}", v[k]);
                fmt::print("{}\n", v.size() > 10 ? fmt::format(" ... ({} values)", v.size()) : "");
            }
        }
        if (session.json) session.answer({{"outputs", all}});
        return 0;
    };
}

}  // namespace cmd_run

const Command run_command{"run", "run a network once, compiled or in the interpreter", "loopegg run compiled --input x.npy -o y.npy", cmd_run::setup};

}  // namespace loopegg
