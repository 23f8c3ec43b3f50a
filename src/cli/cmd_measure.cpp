// 'loopegg measure': how long a network takes on a target, measured here or estimated.
#include <filesystem>
#include <numeric>
#include <span>

#include <fmt/format.h>

#include "backends/measure/network_measure.hpp"
#include "backends/network/network.hpp"
#include "base/atomic_directory.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "graph/load.hpp"

namespace loopegg {
namespace cmd_measure {

struct Arguments {
    std::string model, target = "host";
    std::uint64_t seed = 0;
    int rounds = 15;
    bool steps = false;
};

// Where the time of a compiled network goes: every step in the order in which it runs, timed inside the network.
int tell_steps(const std::filesystem::path& folder, int rounds, Session& session) {
    if (!std::filesystem::is_directory(folder))
        throw UsageError(Diagnostic{"--steps is for a compiled network", {}, "compile it first: loopegg compile MODEL --out FOLDER"});
    require_whole(folder, "loopegg compile MODEL --out " + folder.string());
    session.progress.stage("time the steps");
    const std::vector<double> times = measure_steps(std::span(&folder, 1), rounds).front();
    session.progress.finish();
    if (times.empty()) throw UserError("'" + folder.string() + "' cannot be run on this machine");
    const auto steps = nlohmann::json::parse(read_file(folder / "network.json")).at("steps");
    const double sum = std::accumulate(times.begin(), times.end(), 0.0);
    nlohmann::json rows = nlohmann::json::array();
    for (std::size_t i = 0; i < times.size(); ++i) {
        const std::string site = steps.at(i).value("site", "");
        rows.push_back({{"step", i}, {"site", site}, {"ms", times[i]}});
        if (!session.json) fmt::print("{:>4}  {:>9.4f} ms  {:>5.1f}%  {}\n", i, times[i], 100 * times[i] / sum, site.empty() ? "(moves values)" : site);
    }
    if (session.json)
        session.answer({{"steps", rows}, {"sum_ms", sum}});
    else
        fmt::print("{:.3f} ms in {} steps (the lower quartile of each)\n", sum, times.size());
    return 0;
}

Action setup(CLI::App& app) {
    auto a = std::make_shared<Arguments>();
    app.add_option("MODEL", a->model, "model.json, .onnx, zoo:NAME, or a folder that 'loopegg compile' wrote")->required();
    add_store_option(app);
    app.add_option("--target", a->target, "the machine to compile for ('loopegg targets' lists them)")->capture_default_str();
    app.add_option("--repeat,--rounds", a->rounds, "how often to take three samples")->check(CLI::Range(1, 10000));
    app.add_flag("--steps", a->steps, "also report the time of each step of a compiled network");
    app.add_option("--seed", a->seed, "random seed of the weights if the model has none");
    return [a](Session& session) {
        if (a->steps) return tell_steps(a->model, a->rounds, session);
        const NetworkLatency m = measure_model(a->model, a->target, a->seed, a->rounds, session.progress);
        if (session.json)
            session.answer({{"median_ms", m.latency.median_ms},
                            {"iqr_ms", m.latency.iqr_ms},
                            {"n", m.latency.n},
                            {"target", m.latency.target},
                            {"measured", m.latency.measured},
                            {"disturbed", m.latency.disturbed},
                            {"compiled", m.compiled},
                            {"timed", m.timed},
                            {"machine", m.machine}});
        else if (!m.latency.measured)
            fmt::print("{:.3f} ms on {}, estimated from its data sheet\n", m.latency.median_ms, m.latency.target);
        else
            fmt::print("{:.3f} ms on {} (quartiles {:.3f} ms apart, {} samples{}{})\n", m.latency.median_ms, m.latency.target, m.latency.iqr_ms, m.latency.n,
                       m.machine.empty() ? "" : "; " + m.machine, m.latency.disturbed ? "; the machine was busy with something else" : "");
        return 0;
    };
}

}  // namespace cmd_measure

const Command measure_command{"measure", "time a network on a target", "loopegg measure zoo:resnet34-cifar10 --target host", cmd_measure::setup};

}  // namespace loopegg
