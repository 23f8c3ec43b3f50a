// 'loopegg run': one inference of a compiled network on this machine.
#include <fmt/format.h>

#include "backends/measure/run_confined.hpp"
#include "backends/network/network.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/quote.hpp"
#include "base/whole_folder.hpp"
#include "cli/commands.hpp"
#include "graph/npy.hpp"
#include "graph/weights.hpp"

namespace loopegg {
namespace {

struct Arguments {
    std::string folder, out;
    std::vector<std::string> inputs;
    std::uint64_t seed = 0;
};

Action setup(CLI::App& app) {
    auto a = std::make_shared<Arguments>();
    app.add_option("DIR", a->folder, "what 'loopegg compile' wrote")->required();
    app.add_option("--input", a->inputs, "a .npy file per input; without it, normal values from the seed");
    app.add_option("--output", a->out, "where to write the first output as .npy");
    app.add_option("--seed", a->seed, "of the input, when none is given");
    return [a](Session& session) {
        require_whole(a->folder, "loopegg compile MODEL --out " + shell_word(a->folder));
        const NetworkPorts network = read_ports(a->folder);
        if (!a->inputs.empty() && a->inputs.size() != network.inputs.size()) throw UsageError(fmt::format("the network takes {} input(s)", network.inputs.size()));
        std::vector<Tensor> inputs;
        for (std::size_t i = 0; i < network.inputs.size(); ++i)
            inputs.push_back(a->inputs.empty() ? normal_tensor(network.inputs[i].shape, a->seed, network.inputs[i].name) : read_npy(a->inputs[i]));
        const std::vector<Tensor> outputs = run_confined(a->folder, inputs);
        if (!a->out.empty()) write_file(a->out, write_npy(outputs[0]));
        nlohmann::json all = nlohmann::json::array();
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            const auto& v = outputs[i].values;
            if (session.json) all.push_back({{"name", network.outputs[i].name}, {"shape", outputs[i].shape}, {"values", v}});
            else {
                fmt::print("{}", network.outputs[i].name);
                for (std::size_t k = 0; k < std::min<std::size_t>(v.size(), 10); ++k) fmt::print(" {:.6g}", v[k]);
                fmt::print("{}\n", v.size() > 10 ? fmt::format(" ... ({} values)", v.size()) : "");
            }
        }
        if (session.json) session.answer({{"outputs", all}});
        return 0;
    };
}

}  // namespace

const Command run_command{"run", "run a compiled network once", "loopegg run compiled --input x.npy", setup};

}  // namespace loopegg
