// 'loopegg measure': how long a network takes on a target, measured here or estimated.
#include <fmt/format.h>

#include "backends/network/network.hpp"
#include "backends/measure/network_measure.hpp"
#include "cli/commands.hpp"
#include "cli/store_option.hpp"
#include "graph/load.hpp"

namespace loopegg {
namespace {

struct Arguments {
    std::string model, target = "host", out;
    std::uint64_t seed = 0;
    int rounds = 15;
};

Action setup(CLI::App& app) {
    auto a = std::make_shared<Arguments>();
    app.add_option("MODEL", a->model, "model.json, .onnx, zoo:NAME, or a folder that 'loopegg compile' wrote")->required();
    add_store_option(app);
    app.add_option("--target", a->target, "the machine to compile for ('loopegg targets' lists them)")->capture_default_str();
    app.add_option("--rounds", a->rounds, "how often three samples are taken")->check(CLI::Range(1, 10000));
    app.add_option("--seed", a->seed, "draws the weights of a model that has none");
    return [a](Session& session) {
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
        else if (!m.latency.measured) fmt::print("{:.3f} ms on {}, estimated from its data sheet\n", m.latency.median_ms, m.latency.target);
        else
            fmt::print("{:.3f} ms on {} (quartiles {:.3f} ms apart, {} samples{}{})\n", m.latency.median_ms, m.latency.target, m.latency.iqr_ms, m.latency.n,
                       m.machine.empty() ? "" : "; " + m.machine, m.latency.disturbed ? "; the machine was busy with something else" : "");
        return 0;
    };
}

}  // namespace

const Command measure_command{"measure", "time a network on a target", "loopegg measure zoo:resnet34-cifar10 --target host", setup};

}  // namespace loopegg
